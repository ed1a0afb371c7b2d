/** A service that really runs: `pagefile serve` on a free port, over a database of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { createPagefile, type Pagefile } from "../src/index.ts";

const COMMAND = process.env["COMMAND_OF_PAGEFILE"] ?? "pagefile";
const START_S = 300;

export interface Service {
  url: string;
  client: Pagefile;
  stop(): Promise<void>;
}

/** A client of a service that is there for the tests of this file. */
export function service(settings: Record<string, string> = {}): { readonly client: Pagefile; readonly url: string } {
  let running: Service | undefined;
  before(async () => {
    running = await started(settings);
  });
  after(() => running?.stop());
  const found = (): Service => {
    if (running === undefined) {
      throw new Error("The service is not started yet.");
    }
    return running;
  };
  return {
    get client() {
      return found().client;
    },
    get url() {
      return found().url;
    },
  };
}

async function started(settings: Record<string, string>): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), "pagefile-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(COMMAND, ["serve", "--port", String(port), "--db", join(folder, "memory.db")], {
    cwd: folder,
    env: { ...process.env, ...settings },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const client = createPagefile({ baseUrl: url });
  const stop = async () => {
    await ended(child);
    rmSync(folder, { recursive: true, force: true });
  };
  for (const end = Date.now() + START_S * 1000; ; ) {
    if (child.exitCode !== null || Date.now() > end) {
      await stop();
      throw new Error(`${COMMAND} serve did not start: ${said}`);
    }
    if (await fetch(`${url}/readyz`).then((answer) => answer.ok, () => false)) {
      return { url, client, stop };
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null) {
    const over = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await over;
  }
}

async function freePort(): Promise<number> {
  const { port, close } = await listening(() => undefined);
  await close();
  return port;
}

/** An HTTP server on a free port. */
export async function listening(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return { port, close };
}
