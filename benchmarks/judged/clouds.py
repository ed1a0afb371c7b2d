"""What clouds and clusters answer: descriptions, events, logs of containers, plans that failed, resources as JSON."""

from typing import Any

from benchmarks.judged.case import Case, dice, js, subject


def describe_pod() -> Case:
    """A pod that is killed again and again; the events are at the end."""
    pick = dice("describe pod")
    env = [
        f"      FEATURE_{n:03}:  {pick.choice(('on', 'off', 'shadow'))} (key {pick.getrandbits(32):08x})"
        for n in range(120)
    ]
    text = f"""Name:             payments-api-6c9d7f5b8-tq2vn
Namespace:        prod-eu
Priority:         0
Node:             ip-10-12-44-7.eu-central-1.compute.internal/10.12.44.7
Start Time:       Mon, 09 Nov 2026 02:11:54 +0000
Labels:           app=payments-api
                  pod-template-hash=6c9d7f5b8
Status:           Running
IP:               10.12.61.203
Controlled By:    ReplicaSet/payments-api-6c9d7f5b8
Containers:
  api:
    Image:          images.internal.example/payments-api:4.18.2
    Port:           8443/TCP
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Mon, 09 Nov 2026 07:40:02 +0000
      Finished:     Mon, 09 Nov 2026 07:41:39 +0000
    Ready:          False
    Restart Count:  47
    Limits:
      memory:  768Mi
    Requests:
      cpu:      250m
      memory:   512Mi
    Environment:
{chr(10).join(env)}
Conditions:
  Type              Status
  Initialized       True
  Ready             False
  ContainersReady   False
Volumes:
  kube-api-access-5dd8q:
    Type:                    Projected (a volume that contains injected data from multiple sources)
    TokenExpirationSeconds:  3607
QoS Class:                   Burstable
Events:
  Type     Reason     Age                    From     Message
  ----     ------     ----                   ----     -------
  Normal   Pulled     11m (x47 over 5h30m)   kubelet  Container image "images.internal.example/payments-api:4.18.2" already present on machine
  Warning  BackOff    66s (x1391 over 5h29m) kubelet  Back-off restarting failed container api in pod payments-api-6c9d7f5b8-tq2vn_prod-eu
  Warning  Unhealthy  30m (x12 over 5h)      kubelet  Readiness probe failed: Get "https://10.12.61.203:8443/ready": context deadline exceeded
"""
    return Case(
        "cloud/kubectl-describe", "en", "kubectl", {"args": "describe pod payments-api-6c9d7f5b8-tq2vn -n prod-eu"},
        text,
        (("OOMKilled",), ("payments-api",)),
        (("What is the memory limit of the payments-api container?", "768Mi"), ("payments-api 的就绪探针为什么失败？", "context deadline exceeded")),
    )  # fmt: skip


def docker_logs() -> Case:
    """An application that does not come up, in the log of its container."""
    pick = dice("docker logs")
    beans = ("rateLimiter", "ledgerClient", "outboxPoller", "tenantFilter", "auditSink", "quoteCache")
    lines = [
        f"2026-11-12T05:{n // 60 % 60:02}:{n % 60:02}.{pick.randrange(1000):03}Z  INFO 1 --- [           main] c.m.{pick.choice(('config', 'web', 'batch', 'mail'))}.{pick.choice(beans).title()}Registrar  : {pick.choice(('Registered bean', 'Skipping auto-configuration of', 'Mapped filter', 'Bound property source for'))} {pick.choice(beans)}#{n}"
        for n in range(150)
    ]
    end = """2026-11-12T05:02:41.118Z  WARN 1 --- [           main] ConfigServletWebServerApplicationContext : Exception encountered during context initialization - cancelling refresh attempt
2026-11-12T05:02:41.402Z ERROR 1 --- [           main] o.s.b.d.LoggingFailureAnalysisReporter   :

***************************
APPLICATION FAILED TO START
***************************

Description:

Web server failed to start. Port 9443 was already in use.

Action:

Identify and stop the process that's listening on port 9443 or configure this application to listen on another port.
"""
    return Case(
        "cloud/docker-logs", "en", "docker_logs", {"container": "mailroom", "tail": 200},
        "\n".join(lines) + "\n" + end,
        (("failed to start",), ("9443",)),
        (("Why did mailroom not start?", "Port 9443 was already in use"),),
    )  # fmt: skip


def terraform_error() -> Case:
    """An apply that stops half-way."""
    pick = dice("terraform apply")
    kinds = (
        "aws_iam_role",
        "aws_sqs_queue",
        "aws_lambda_function",
        "aws_cloudwatch_metric_alarm",
        "aws_security_group_rule",
    )
    lines: list[str] = []
    for n in range(70):
        name = f"module.{pick.choice(('ingest', 'export', 'edge'))}.{pick.choice(kinds)}.{pick.choice(('this', 'main', 'worker'))}[{n}]"
        lines += [
            f"{name}: Creating...",
            f"{name}: Creation complete after {pick.randrange(1, 40)}s [id={pick.getrandbits(48):012x}]",
        ]
    end = """╷
│ Error: creating RDS DB Instance (ledger-replica-2): operation error RDS: CreateDBInstanceReadReplica, https response error StatusCode: 400, RequestID: 7f1c0d4e, InstanceQuotaExceeded: Request would result in exceeding quota of 40 instances
│
│   with module.data.aws_db_instance.replica[1],
│   on modules/data/replicas.tf line 31, in resource "aws_db_instance" "replica":
│   31: resource "aws_db_instance" "replica" {
│
╵
"""
    return Case(
        "cloud/terraform-apply", "en", "bash", {"command": "terraform apply -auto-approve"},
        "\n".join(lines) + "\n" + end,
        (("InstanceQuotaExceeded", "exceeding quota", "quota of 40"), ("ledger-replica-2", "RDS", "aws_db_instance")),
        (("In which file and line is the replica that could not be created defined?", "modules/data/replicas.tf line 31"), ("terraform apply 时 ledger-replica-2 超出了什么配额？", "quota of 40 instances")),
    )  # fmt: skip


def actions_log() -> Case:
    """A job of a CI service, with its times and groups; the step that publishes fails."""
    pick = dice("actions")
    lines: list[str] = []
    for group in (
        "Set up job",
        "Run actions/checkout@v5",
        "Run actions/setup-java@v5",
        "Run ./gradlew assemble",
        "Run ./gradlew publish",
    ):
        lines.append(f"##[group]{group}")
        lines += [
            f"{pick.choice(('Download', 'Resolve', 'Cache hit for', 'Unpack', 'Verify'))} {pick.choice(('kotlin-stdlib', 'okio', 'grpc-netty', 'protobuf', 'asm'))}-{pick.randrange(1, 9)}.{pick.randrange(30)}.{pick.randrange(9)}.jar ({pick.randrange(9, 900)} kB)"
            for _ in range(45)
        ]
        lines.append("##[endgroup]")
    lines += [
        "> Task :publisher:publishMavenPublicationToStagingRepository FAILED",
        "Could not PUT 'https://staging.artifacts.example/releases/publisher-7.3.0.pom'. Received status code 409 from server: Conflict (version 7.3.0 was already released)",
        "##[error]Process completed with exit code 1.",
        "Post job cleanup.",
    ]
    stamped = [
        f"2026-11-10T19:{n // 60:02}:{n % 60:02}.{pick.randrange(10**7):07}Z {line}"
        for n, line in enumerate(lines)
    ]
    return Case(
        "cloud/actions-log", "en", "get_job_logs", {"run_id": 18822731, "job": "publish"},
        "\n".join(stamped),
        (("409", "already released", "publishMavenPublicationToStagingRepository"), ("exit code 1", "FAILED", "Conflict")),
        (("Which version could not be published because it was already released?", "version 7.3.0"), ("发布任务里哪个 Gradle task 失败了？", ":publisher:publishMavenPublicationToStagingRepository")),
    )  # fmt: skip


def instances() -> Case:
    """Machines, two levels down, each with tags as pairs."""
    pick = dice("instances")
    reservations: list[dict[str, Any]] = []
    for n in range(38):
        state = "stopped" if n == 21 else "running"
        name = "legacy-fax-bridge" if n == 21 else f"{pick.choice(('web', 'queue', 'cache', 'etl'))}-{n:02}"
        machine = {
            "InstanceId": f"i-{pick.getrandbits(68):017x}", "InstanceType": pick.choice(("m7g.large", "c7i.xlarge", "r7g.2xlarge")),
            "State": {"Code": 80 if n == 21 else 16, "Name": state}, "PrivateIpAddress": f"10.8.{n}.{pick.randrange(4, 250)}",
            "Placement": {"AvailabilityZone": f"eu-west-1{pick.choice('abc')}", "Tenancy": "default"},
            "StateTransitionReason": "User initiated (2026-08-30 16:02:11 GMT)" if n == 21 else "",
            "Tags": [{"Key": "Name", "Value": name}, {"Key": "owner", "Value": pick.choice(("ingest", "search", "billing"))}],
            "Monitoring": {"State": "disabled"},
        }  # fmt: skip
        reservations.append(
            {
                "ReservationId": f"r-{pick.getrandbits(68):017x}",
                "OwnerId": "448812093321",
                "Instances": [machine],
            }
        )
    return Case(
        "cloud/ec2-instances", "en", "aws", {"command": "ec2 describe-instances --region eu-west-1"},
        js({"Reservations": reservations}, 4),
        (("38",), ("reservation", "instance")),
        (("When was legacy-fax-bridge shut down by a user?", "2026-08-30 16:02:11 GMT"), ("唯一一台 stopped 状态的机器叫什么？", "legacy-fax-bridge")),
    )  # fmt: skip


def insights() -> Case:
    """Rows of a log query as lists of fields and values."""
    pick = dice("insights")
    rows = [
        [
            {"field": "@timestamp", "value": f"2026-11-11 0{n % 10}:{pick.randrange(60):02}:11.204"},
            {
                "field": "route",
                "value": pick.choice(("/v2/quotes", "/v2/orders", "/v2/carts", "/internal/health")),
            },
            {"field": "p99_ms", "value": "18422.7" if n == 33 else f"{pick.random() * 900:.1f}"},
            {
                "field": "tenant",
                "value": "kestrel-optics" if n == 33 else pick.choice(("altamira", "nordfisk", "juniper")),
            },
            {"field": "@ptr", "value": f"{pick.getrandbits(160):040x}"},
        ]
        for n in range(60)
    ]
    body = {
        "results": rows,
        "statistics": {"recordsMatched": 918233.0, "recordsScanned": 41200871.0, "bytesScanned": 9.1e9},
        "status": "Complete",
    }
    return Case(
        "cloud/insights", "en", "run_insights_query", {"query": "stats pct(latency, 99) by route, tenant"},
        js(body),
        (("60",), ("p99_ms", "route", "/v2/quotes")),
        (("What was the slowest p99 of kestrel-optics in milliseconds?", "18422.7"), ("这次日志查询扫描了多少条记录？", "41200871")),
    )  # fmt: skip


def unit_status() -> Case:
    """A unit that failed, with its last lines; of middling length."""
    pick = dice("systemctl")
    lines = [
        f"Nov 12 03:1{n % 10}:{pick.randrange(60):02} edge-4 tunneld[2201]: peer {pick.randrange(40)}: {subject('incident').sentence(pick)}"
        for n in range(18)
    ]
    text = """× tunneld.service - Site tunnel daemon
     Loaded: loaded (/etc/systemd/system/tunneld.service; enabled; preset: enabled)
     Active: failed (Result: start-limit-hit) since Thu 2026-11-12 03:20:08 UTC; 41min ago
   Duration: 4.212s
    Process: 2201 ExecStart=/usr/local/bin/tunneld --config /etc/tunneld/site.toml (code=exited, status=78)
   Main PID: 2201 (code=exited, status=78)
        CPU: 118ms

""" + "\n".join([*lines, "Nov 12 03:20:07 edge-4 tunneld[2201]: fatal: key file /etc/tunneld/site.key has mode 0644, want 0600", "Nov 12 03:20:08 edge-4 systemd[1]: tunneld.service: Start request repeated too quickly.", "Nov 12 03:20:08 edge-4 systemd[1]: Failed to start tunneld.service - Site tunnel daemon."])  # fmt: skip
    return Case(
        "cloud/systemctl", "en", "bash", {"command": "systemctl status tunneld -n 20"},
        text,
        (("tunneld",), ("failed", "start-limit-hit"), ("key file", "status=78", "start-limit-hit", "site.key", "too quickly")),
        (("What is wrong with the key file of the site tunnel?", "has mode 0644, want 0600"), ("tunneld 服务的退出状态码是多少？", "status=78")),
    )  # fmt: skip


def sls_zh() -> Case:
    """Entries of a log service with its own underscored fields; one is the cause."""
    pick = dice("sls")
    said = (
        "优惠券核销成功，用户 {}",
        "开始推送模板消息，批次 {}",
        "库存预占完成，单号 {}",
        "调用风控接口耗时 {} 毫秒",
        "缓存未命中，回源商品 {}",
    )
    rows: list[dict[str, Any]] = [
        {
            "__time__": 1762900000 + 3 * n, "__source__": f"172.16.{pick.randrange(9)}.{pick.randrange(250)}", "__topic__": "mall-promotion",
            "level": "INFO", "traceId": f"{pick.getrandbits(64):016x}", "class": pick.choice(("CouponService", "PushJob", "StockFacade")),
            "message": pick.choice(said).format(pick.randrange(10**5, 10**6)),
        }
        for n in range(130)
    ]  # fmt: skip
    rows[77] |= {
        "level": "ERROR",
        "class": "CouponService",
        "message": "核销失败：券模板 T20261111 的发行量已被人工改为 0，操作人 liuyan03",
    }
    return Case(
        "cloud/sls-zh", "zh", "sls_get_logs", {"project": "mall", "query": "mall-promotion"},
        js({"count": 130, "progress": "Complete", "logs": rows}),
        (("核销失败", "T20261111"), ("130", "ERROR")),
        (("券模板 T20261111 的发行量是谁改的？", "liuyan03"), ("Which coupon template could not be redeemed in mall-promotion?", "券模板 T20261111")),
    )  # fmt: skip


def manifests_zh() -> Case:
    """Several YAML documents with remarks in Chinese."""
    pick = dice("manifests")
    docs: list[str] = []
    for n, name in enumerate(
        (
            "gateway",
            "member",
            "points",
            "sms",
            "report",
            "risk",
            "search",
            "trade",
            "stock",
            "coupon",
            "audit",
            "finance",
        )
    ):
        docs.append(f"""apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}-svc
  namespace: mall-prod
  annotations:
    负责人: {pick.choice(("王磊", "赵敏", "陈思远", "何静"))}
spec:
  replicas: {9 if name == "trade" else pick.randrange(2, 5)}   # {"大促期间由 4 扩到 9，活动后要缩回" if name == "trade" else subject("code_comment_zh").sentence(pick)}
  template:
    spec:
      containers:
        - name: app
          image: harbor.corp.example/mall/{name}:3.{n}.{pick.randrange(40)}
          resources:
            limits: {{cpu: "{pick.randrange(1, 5)}", memory: {"12Gi" if name == "search" else "2Gi"}}}
          env:
            - name: JAVA_OPTS
              value: "-Xms1g -Xmx{"10g" if name == "search" else "1500m"}"
            - name: NACOS_ADDR
              value: nacos.mall-prod:8848""")  # fmt: skip
    return Case(
        "cloud/manifests-zh", "zh", "read_file", {"path": "deploy/mall-prod.yaml"},
        "\n---\n".join(docs) + "\n",
        (("Deployment",), ("12", "gateway-svc", "gateway")),
        (("search-svc 的内存上限配的是多少？", "12Gi"), ("Why does trade-svc have nine replicas?", "大促期间由 4 扩到 9")),
    )  # fmt: skip


CASES = (
    describe_pod,
    docker_logs,
    terraform_error,
    actions_log,
    instances,
    insights,
    unit_status,
    sls_zh,
    manifests_zh,
)
