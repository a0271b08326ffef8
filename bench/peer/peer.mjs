// A plain peer, as its users write it: a queue on Redis, one worker process that signs and posts.
//
//   node peer.mjs worker PORT URL          until it is killed
//   node peer.mjs load PORT SECONDS        as fast as it is taken, with a bounded backlog
//   node peer.mjs paced PORT SECONDS RATE  at a steady rate
//
// Each event's ID ends with the time, in microseconds since 1970, at which it was meant to go.

import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";

const [mode, port, ...rest] = process.argv.slice(2);
const connection = new Redis({ host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null });
const KEY = Buffer.from("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "base64");
const JOB = { attempts: 7, backoff: { type: "exponential", delay: 1000 }, removeOnComplete: 1000, removeOnFail: false };
const BACKLOG = 1000;

async function post(job, url) {
  const body = JSON.stringify(job.data.payload);
  const at = Math.floor(Date.now() / 1000);
  const signature = createHmac("sha256", KEY).update(`${job.id}.${at}.${body}`).digest("base64");
  const answer = await fetch(url, {
    method: "POST",
    redirect: "manual",
    signal: AbortSignal.timeout(5000),
    headers: {
      "content-type": "application/json",
      "webhook-id": job.id,
      "webhook-timestamp": String(at),
      "webhook-signature": `v1,${signature}`,
      "waybill-event-id": job.data.event,
    },
    body,
  });
  await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`answered ${answer.status}`);
}

function add(queue, n, at) {
  const event = `${mode}-${n}-${Math.round(at * 1000)}`;
  const payload = { leaseId: "lease_881", paymentId: event, amountCents: 125000, currency: "USD" };
  return queue.add("webhook", { event, payload }, { ...JOB, jobId: event });
}

if (mode === "worker") {
  const worker = new Worker("webhooks", (job) => post(job, rest[0]), { connection, concurrency: 256 });
  worker.on("error", (error) => {
    console.error(error);
    process.exit(1);
  });
} else {
  const queue = new Queue("webhooks", { connection });
  await queue.waitUntilReady();
  const begin = Date.now();
  const end = begin + Number(rest[0]) * 1000;
  if (mode === "load") {
    let [next, waiting] = [0, 0];
    const adders = Array.from({ length: 64 }, async () => {
      while (Date.now() < end) {
        if (waiting >= BACKLOG) await sleep(5);
        else await add(queue, next++, Date.now());
      }
    });
    const watch = (async () => {
      while (Date.now() < end) {
        waiting = await queue.getWaitingCount();
        await sleep(10);
      }
    })();
    await Promise.all([...adders, watch]);
  } else {
    const per_ms = Number(rest[1]) / 1000;
    const sent = [];
    for (let n = 0; begin + n / per_ms < end; n++) {
      const at = begin + n / per_ms;
      await sleep(Math.max(0, at - Date.now()));
      sent.push(add(queue, n, at));
    }
    await Promise.all(sent);
  }
  await queue.close();
  await connection.quit();
}
