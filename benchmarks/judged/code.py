"""Source code as coding agents read it: with line numbers, whole files, in the usual languages."""

from string import Template

from benchmarks.judged.case import Case, data, dice, numbered, subject

#: What a file of code must not be taken for.
NOT_CODE = (
    "search results", "搜索结果", "检索结果", "markdown document", "Markdown 文档", "TSV table", "TSV 表格", "CSV table", "CSV 表格",
)  # fmt: skip

_PY_METHOD = Template('''
    def ${verb}_${noun}(self, ${noun}_id: str, *, timeout: float | None = None) -> ${Noun} | None:
        """${said}"""
        response = self._send("${http}", f"/v2/${noun}s/{${noun}_id}", timeout=timeout or self.timeout)
        if response.status_code == 404:
            return None
        payload = response.json()
        self._log.debug("${verb} ${noun} %s took %.1f ms", ${noun}_id, response.elapsed.total_seconds() * ${k})
        return ${Noun}.from_payload(payload["${noun}"])
''')


def python_client() -> Case:
    """A client of an API: imports, dataclasses, one class with many methods."""
    pick = dice("python client")
    nouns = ("mandate", "payout", "refund", "invoice", "customer", "dispute", "webhook", "balance")
    verbs = (
        ("get", "GET"),
        ("cancel", "POST"),
        ("archive", "DELETE"),
        ("update", "PATCH"),
        ("retry", "POST"),
    )
    methods = [
        _PY_METHOD.substitute(verb=verb, noun=noun, Noun=noun.title(), http=http, said=subject("code_comment").sentence(pick), k=1000)
        for noun in nouns for verb, http in verbs
    ]  # fmt: skip
    methods.insert(23, '''
    def _backoff(self, attempt: int) -> float:
        """Seconds to wait before the next attempt; the acquirer bans clients that come back sooner."""
        return min(self.max_wait, 0.35 * 2**attempt) + self._rng.uniform(0.0, 0.18)
''')  # fmt: skip
    records = "".join(
        f'\n\n@dataclass(frozen=True)\nclass {noun.title()}:\n    id: str\n    state: str\n    amount: Decimal\n\n    @classmethod\n'
        f'    def from_payload(cls, payload: dict[str, Any]) -> "{noun.title()}":\n        return cls(payload["id"], payload["state"], Decimal(payload["amount"]))\n'
        for noun in nouns
    )  # fmt: skip
    head = """from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import httpx

from ._errors import AcquirerError, IdempotencyConflict
from ._types import URL, QueryParams

__all__ = ["AcquirerClient"]
"""
    cls = '''

class AcquirerClient:
    """A blocking client for the acquirer's v2 API.

    Every POST carries an idempotency key, so a request that timed out may be sent again.
    """

    def __init__(self, base_url: URL | str, token: str, *, timeout: float = 12.5, max_wait: float = 40.0) -> None:
        self._http = httpx.Client(base_url=base_url, headers={"Authorization": f"Bearer {token}"})
        self.timeout = timeout
        self.max_wait = max_wait
        self._rng = random.Random()
        self._log = logging.getLogger(__name__)
'''
    text = head + records + cls + "".join(methods)
    return Case(
        "code/python", "en", "Read", {"file_path": "src/acquirer/client.py"},
        numbered(text),
        (("AcquirerClient",), ("class", "python", "def ")),
        (
            ("How long does AcquirerClient wait between two attempts?", "0.35 * 2**attempt"),
            ("AcquirerClient 默认超时是多少秒？", "timeout: float = 12.5"),
        ),
        wrong=NOT_CODE,
    )  # fmt: skip


_TS = Template("""
  /** ${said} */
  async ${verb}${Noun}(ctx: RequestContext, input: ${Noun}Input): Promise<Result<${Noun}>> {
    const span = this.tracer.startSpan('${noun}.${verb}', { tenant: ctx.tenantId });
    try {
      const row = await this.db.${noun}.${verb}({ where: { id: input.id, tenantId: ctx.tenantId } });
      if (!row) return err(new NotFoundError('${noun}', input.id));
      await this.bus.publish({ type: '${noun}.${verb}ed', id: row.id, at: this.clock.now() });
      return ok(to${Noun}(row));
    } finally {
      span.end();
    }
  }
""")


def typescript_zh() -> Case:
    """A service class with comments in Chinese."""
    pick = dice("typescript zh")
    nouns = ("coupon", "order", "member", "parcel", "shelf", "voucher", "address")
    made = [
        _TS.substitute(verb=verb, Noun=noun.title(), noun=noun, said=subject("code_comment_zh").sentence(pick))
        for noun in nouns for verb in ("create", "update", "delete", "freeze", "restore")
    ]  # fmt: skip
    made.insert(19, """
  /**
   * 合并两个会员账号：积分相加，等级取高，被合并账号保留 90 天后物理删除。
   * 注意：企业会员不可合并，抛出 MEMBER_B2B_LOCKED。
   */
  async mergeMembers(ctx: RequestContext, keep: string, drop: string): Promise<Result<Member>> {
    if (await this.isCorporate(drop)) return err(new ConflictError('MEMBER_B2B_LOCKED'));
    return this.db.$transaction((tx) => this.moveAll(tx, keep, drop), { timeout: 15_000 });
  }
""")  # fmt: skip
    head = """import { Injectable } from '@nestjs/common';
import type { Clock, EventBus, RequestContext, Result } from '../kernel';
import { ConflictError, NotFoundError, err, ok } from '../kernel';
import { PrismaService } from '../db/prisma.service';

/** 会员与履约服务：所有写操作都发布领域事件，读操作走只读副本。 */
@Injectable()
export class MemberFulfilmentService {
  constructor(
    private readonly db: PrismaService,
    private readonly bus: EventBus,
    private readonly clock: Clock,
    private readonly tracer: Tracer,
  ) {}
"""
    return Case(
        "code/typescript-zh", "zh", "read_file", {"path": "apps/api/src/member/member-fulfilment.service.ts"},
        numbered(head + "".join(made) + "}\n"),
        (("MemberFulfilmentService",), ("class", "typescript", "类", "service")),
        (
            ("会员账号合并以后，旧账号什么时候真正删掉？", "保留 90 天后物理删除"),
            ("Which error does MemberFulfilmentService return when a corporate member is merged?", "MEMBER_B2B_LOCKED"),
        ),
        wrong=NOT_CODE,
    )  # fmt: skip


_GO = Template("""
// ${Verb}${Noun} ${said}
func (s *Server) ${Verb}${Noun}(ctx context.Context, req *pb.${Verb}${Noun}Request) (*pb.${Noun}, error) {
	if err := s.authz.Check(ctx, "${noun}:${verb}"); err != nil {
		return nil, status.Errorf(codes.PermissionDenied, "${verb} ${noun}: %v", err)
	}
	row, err := s.store.${Verb}${Noun}(ctx, req.GetId())
	if errors.Is(err, sql.ErrNoRows) {
		return nil, status.Errorf(codes.NotFound, "${noun} %q", req.GetId())
	}
	return row.Proto(), err
}
""")


def go_server() -> Case:
    """A gRPC server."""
    pick = dice("go server")
    nouns = ("Lease", "Volume", "Snapshot", "Quota", "Replica", "Shard", "Token")
    made = [
        _GO.substitute(Verb=verb, verb=verb.lower(), Noun=noun, noun=noun.lower(), said=subject("code_comment").sentence(pick))
        for noun in nouns for verb in ("Get", "List", "Create", "Drain", "Expire", "Resize")
    ]  # fmt: skip
    made.insert(30, """
// renewInterval must stay below a third of leaseTTL, or a paused VM loses its shards.
const (
	leaseTTL      = 47 * time.Second
	renewInterval = 13 * time.Second
)
""")  # fmt: skip
    head = 'package leased\n\nimport (\n\t"context"\n\t"database/sql"\n\t"errors"\n\t"time"\n\n\t"google.golang.org/grpc/codes"\n\t"google.golang.org/grpc/status"\n)\n\n// Server implements the LeaseService of the shard coordinator.\ntype Server struct {\n\tpb.UnimplementedLeaseServiceServer\n\tstore Store\n\tauthz Authorizer\n}\n'
    return Case(
        "code/go", "en", "cat", {"path": "internal/leased/server.go"},
        head + "".join(made),
        (("leased", "LeaseService", "Server struct", "type Server"), ("func", "go ", "golang", "(go)", "go,")),
        (("In leased, after how many seconds does a lease run out that nobody renewed?", "47 * time.Second"), ("leased 里 renewInterval 为什么不能太长？", "a paused VM loses its shards")),
        wrong=NOT_CODE,
    )  # fmt: skip


_RUST = Template("""
    /// ${said}
    pub fn ${verb}_${noun}(&mut self, key: ${Noun}Key, now: Instant) -> Result<Option<${Noun}>, ${Noun}Error> {
        let slot = self.${noun}s.get_mut(&key).ok_or(${Noun}Error::Unknown(key))?;
        if slot.expires_at <= now {
            self.metrics.expired.inc();
            return Ok(None);
        }
        tracing::trace!(?key, "${verb} ${noun}");
        slot.${verb}(now).map(Some)
    }
""")


def rust_cache() -> Case:
    """One `impl` block, doc comments, a macro and tests at the end."""
    pick = dice("rust cache")
    made = [
        _RUST.substitute(verb=verb, noun=noun, Noun=noun.title(), said=subject("code_comment").sentence(pick))
        for noun in ("frame", "extent", "segment", "bloom", "cursor", "latch") for verb in ("touch", "pin", "evict", "seal", "split")
    ]  # fmt: skip
    made.insert(17, """
    /// Safety: callers hold the shard latch. Dropping it first corrupts the free list (see incident 0219).
    unsafe fn unlink_raw(&mut self, node: NonNull<Node>) -> u32 {
        let generation = (*node.as_ptr()).generation.wrapping_add(3);
        self.free.push(node);
        generation
    }
""")  # fmt: skip
    head = "//! A sharded clock-pro cache for page frames.\n\nuse std::{collections::HashMap, ptr::NonNull, time::Instant};\n\npub struct ClockProCache {\n    frames: HashMap<FrameKey, FrameSlot>,\n    free: Vec<NonNull<Node>>,\n    metrics: Metrics,\n}\n\nimpl ClockProCache {\n"
    tail = "}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn generation_skips_tombstones() {\n        assert_eq!(ClockProCache::with_capacity(8).generation(), 3);\n    }\n}\n"
    return Case(
        "code/rust", "en", "read_file", {"path": "crates/buffer/src/clock_pro.rs"},
        head + "".join(made) + tail,
        (("ClockProCache", "clock-pro cache"), ("impl", "rust", "struct", "fn ")),
        (("What would corrupt the free list of ClockProCache?", "Dropping it first"), ("ClockProCache 的 generation 每次加多少？", "wrapping_add(3)")),
        wrong=(*NOT_CODE, "Python"),
    )  # fmt: skip


_JAVA = Template("""
    /**
     * ${said}
     */
    @Transactional(rollbackFor = Exception.class)
    public ${Noun}VO ${verb}${Noun}(Long id, ${Noun}Command command) {
        ${Noun}DO record = ${noun}Mapper.selectById(id);
        if (record == null) {
            throw new BizException(ErrorCode.${UP}_NOT_EXIST, id);
        }
        log.info("${verb} ${noun}, id={}, operator={}", id, command.getOperator());
        return ${noun}Converter.toVO(record);
    }
""")


def java_zh() -> Case:
    """A service of a settlement system."""
    pick = dice("java zh")
    made = [
        _JAVA.substitute(verb=verb, Noun=noun, noun=noun.lower(), UP=noun.upper(), said=subject("code_comment_zh").sentence(pick))
        for noun in ("Statement", "Payout", "Rebate", "Invoice", "Deposit", "Merchant") for verb in ("approve", "reject", "freeze", "confirm", "revoke")
    ]  # fmt: skip
    made.insert(13, """
    /** 结算日遇节假日顺延；跨月时改为前一个工作日（财务 2026-03 通知）。 */
    private LocalDate settleDate(LocalDate day) {
        LocalDate next = calendar.nextWorkday(day);
        return next.getMonth() == day.getMonth() ? next : calendar.previousWorkday(day);
    }

    /** 单笔打款上限 500000 元，超过需双人复核。 */
    private static final BigDecimal DUAL_REVIEW = new BigDecimal("500000");
""")  # fmt: skip
    head = "package com.yunshang.settle.service;\n\nimport java.math.BigDecimal;\nimport java.time.LocalDate;\nimport lombok.RequiredArgsConstructor;\nimport lombok.extern.slf4j.Slf4j;\nimport org.springframework.stereotype.Service;\n\n/** 商户结算服务。 */\n@Slf4j\n@Service\n@RequiredArgsConstructor\npublic class MerchantSettleService {\n    private final StatementMapper statementMapper;\n    private final WorkCalendar calendar;\n"
    return Case(
        "code/java-zh", "zh", "read_file", {"path": "settle-core/src/main/java/com/yunshang/settle/service/MerchantSettleService.java"},
        numbered(head + "".join(made) + "}\n"),
        (("MerchantSettleService", "商户结算服务"), ("class", "java", "类")),
        (
            ("商户结算碰上月末放假，钱哪天到？", "改为前一个工作日"),
            ("In MerchantSettleService, above which amount do two people have to check a payout?", "单笔打款上限 500000 元"),
        ),
        wrong=NOT_CODE,
    )  # fmt: skip


def shell_zh() -> Case:
    """A deployment script with usage text and functions."""
    return Case(
        "code/shell-zh", "zh", "read_file", {"path": "deploy/rollout.sh"},
        numbered(data("rollout.sh.txt")),
        (("rollout", "灰度", "发布"), ("shell", "bash", "脚本", "script", "函数", "function")),
        (("rollout.sh 灰度发布时错误率超过多少会自动撤回？", "ERR_LIMIT=0.8"), ("Where does rollout.sh move releases that are no longer kept?", "/data/releases/.trash")),
        wrong=NOT_CODE,
    )  # fmt: skip


def cpp() -> Case:
    """A header with templates, of middling length."""
    return Case(
        "code/cpp", "en", "view", {"path": "include/ring/spsc_queue.hpp"},
        data("spsc_queue.hpp.txt"),
        (("SpscQueue", "spsc_queue"), ("class", "template", "c++", "queue")),
        (("Why do head and tail of SpscQueue lie on separate cache lines?", "false sharing cost us 38% throughput"), ("SpscQueue 的 Capacity 有什么要求？", "Capacity must be a power of two")),
        wrong=NOT_CODE,
    )  # fmt: skip


def schema_zh() -> Case:
    """Tables, indexes and a view, with comments in Chinese."""
    pick = dice("schema zh")
    tables = (
        "member",
        "member_point",
        "coupon_batch",
        "coupon",
        "shop",
        "shop_stock",
        "parcel",
        "refund_sheet",
        "invoice_title",
        "sms_log",
        "risk_event",
        "price_rule",
    )
    made: list[str] = ["-- 会员中台数据库结构，由 flyway 维护，请勿手工修改\nSET NAMES utf8mb4;\n"]
    for table in tables:
        columns = [f"  `{name}` {kind} NOT NULL COMMENT '{subject('code_comment_zh').sentence(pick)}'," for name, kind in
                   pick.sample((("tenant_id", "bigint"), ("status", "tinyint"), ("amount", "decimal(18,2)"), ("remark", "varchar(512)"), ("ext", "json"),
                                ("operator", "varchar(64)"), ("channel", "varchar(32)"), ("expire_at", "datetime(3)"), ("version", "int unsigned")), 8)]  # fmt: skip
        if table == "risk_event":
            columns.append(
                "  `score` smallint NOT NULL COMMENT '风险分，≥ 720 自动冻结账户，人工解冻须两级审批',"
            )
        made.append(
            f"CREATE TABLE `t_{table}` (\n  `id` bigint unsigned NOT NULL AUTO_INCREMENT,\n"
            + "\n".join(columns)
            + f"\n  PRIMARY KEY (`id`),\n  KEY `idx_{table}_tenant` (`tenant_id`,`status`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;\n"
        )
    made.append(
        "CREATE OR REPLACE VIEW v_member_balance AS\nSELECT member_id, SUM(delta) AS points FROM t_member_point WHERE expire_at > NOW(3) GROUP BY member_id;\n"
    )
    return Case(
        "code/sql-schema-zh", "zh", "read_file", {"path": "db/schema.sql"},
        "\n".join(made),
        (("t_member", "会员中台", "member"), ("CREATE TABLE", "12", "tables", "张表", "SQL")),
        (("会员数据库里风险分多高账号会被自动锁住？", "≥ 720 自动冻结账户"), ("Which view of the member database adds up the points?", "v_member_balance")),
        wrong=NOT_CODE,
    )  # fmt: skip


def helm_values() -> Case:
    """Configuration in YAML: many services, one with a trap."""
    pick = dice("helm")
    services = (
        "cart",
        "catalog",
        "checkout",
        "pricing",
        "media",
        "mailer",
        "reports",
        "search",
        "sessions",
        "stock",
        "taxes",
        "webhooks",
    )
    made = [
        "# Values of the storefront chart, production.\nglobal:\n  imageRegistry: images.shop.example\n  timezone: UTC\n"
    ]
    for name in services:
        cpu, memory = pick.randrange(1, 9) * 100, pick.randrange(1, 9) * 128
        made.append(
            f'{name}:\n  enabled: true\n  replicaCount: {pick.randrange(2, 9)}\n  image:\n    repository: storefront/{name}\n    tag: "2.{pick.randrange(60)}.{pick.randrange(9)}"\n'
            f'  resources:\n    requests: {{cpu: {cpu}m, memory: {memory}Mi}}\n    limits: {{memory: {2 * memory}Mi}}\n  env:\n    LOG_LEVEL: info\n    POOL_SIZE: "{pick.randrange(5, 60)}"\n'
            f"  ingress:\n    host: {name}.shop.example\n    annotations:\n      nginx.ingress.kubernetes.io/proxy-body-size: {pick.randrange(1, 30)}m\n"
        )
        if name == "taxes":
            made.append(
                "  # Do not scale beyond one replica: the Avalis licence is bound to a single MAC address.\n  affinity:\n    licenceNode: node-tax-01\n"
            )
    return Case(
        "code/yaml-values", "en", "cat", {"path": "charts/storefront/values-prod.yaml"},
        "".join(made),
        (("storefront", "catalog", "checkout"), ("values", "chart", "yaml", "config", "12", "cart")),
        (("Why may the taxes service of the storefront chart run as a single copy only?", "the Avalis licence is bound to a single MAC address"),),
        wrong=NOT_CODE,
    )  # fmt: skip


def dockerfile() -> Case:
    """A short one."""
    return Case(
        "code/dockerfile", "en", "Read", {"file_path": "Dockerfile"},
        numbered(data("Dockerfile.txt")),
        (("node:22", "node"), ("dockerfile", "FROM", "image", "stage")),
        (("As which user does the node container of our Dockerfile run?", "USER 10001:10001"),),
        wrong=NOT_CODE,
    )  # fmt: skip


def settings_zh() -> Case:
    """An ini file with sections and remarks."""
    pick = dice("settings zh")
    made = ["; 变电站采集网关配置，修改后需重启 gatewayd\n"]
    for n in range(1, 41):
        made.append(
            f"[channel_{n:02d}]\n; {subject('solar').sentence(pick)}\nprotocol = {pick.choice(('iec104', 'modbus_tcp', 'dlt645'))}\nhost = 10.20.{pick.randrange(9)}.{pick.randrange(250)}\nport = {pick.choice((2404, 502, 8899))}\npoll_ms = {pick.randrange(2, 60) * 100}\nasdu = {n}\n"
        )
        if n == 29:
            made.append(
                "; 该通道经卫星链路，超时不得小于 9000，否则会反复重连\ntimeout_ms = 9600\nlink = sat-beidou-2\n"
            )
    return Case(
        "code/ini-zh", "zh", "read_file", {"path": "conf/gateway.ini"},
        "\n".join(made),
        (("网关", "gateway"), ("40", "channel", "通道", "配置")),
        (("采集网关里走卫星的通道超时设成多少？", "timeout_ms = 9600"), ("Which link does the satellite channel of the gateway use?", "sat-beidou-2")),
        wrong=NOT_CODE,
    )  # fmt: skip


CASES = (
    python_client, typescript_zh, go_server, rust_cache, java_zh, shell_zh, cpp, schema_zh, helm_values, dockerfile,
    settings_zh,
)  # fmt: skip
