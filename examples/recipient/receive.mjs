// A recipient in Node (22.13 or newer): verifies, and applies each delivery once. Nothing to install.

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import { DatabaseSync } from "node:sqlite";

// guide: from here on
const secrets = process.env.WEBHOOK_SECRETS.split(" ").map((secret) => Buffer.from(secret.replace("whsec_", ""), "base64"));

function isGenuine(headers, body) {
  const { "webhook-id": delivery = "", "webhook-timestamp": sentAt = "", "webhook-signature": signatures = "" } = headers;
  if (!/^[0-9]+$/.test(sentAt) || Math.abs(Date.now() / 1000 - Number(sentAt)) > 300) return false;
  const signed = Buffer.concat([Buffer.from(`${delivery}.${sentAt}.`), body]);
  const wanted = secrets.map((secret) => Buffer.from("v1," + createHmac("sha256", secret).update(signed).digest("base64")));
  const given = signatures.split(" ").map((signature) => Buffer.from(signature));
  return wanted.some((one) => given.some((other) => one.length === other.length && timingSafeEqual(one, other)));
}

// The status to answer with. What it applies and that it did stand in one transaction.
function receive(database, headers, body) {
  if (!isGenuine(headers, body)) return 401;
  database.exec("BEGIN IMMEDIATE");
  try {
    const seen = database.prepare("INSERT OR IGNORE INTO seen (delivery) VALUES (?)").run(headers["webhook-id"]);
    if (seen.changes === 1) database.prepare("INSERT INTO effects (body) VALUES (?)").run(body); // your own effect
    database.exec("COMMIT");
    return 204;
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}
// guide: up to here

const [port, file] = process.argv.slice(2);
const database = new DatabaseSync(file);
database.exec(
  "CREATE TABLE IF NOT EXISTS seen (delivery TEXT PRIMARY KEY); CREATE TABLE IF NOT EXISTS effects (body BLOB);",
);
createServer(async (request, response) => {
  try {
    const body = Buffer.concat(await request.toArray());
    response.writeHead(receive(database, request.headers, body)).end();
  } catch {
    response.writeHead(503).end(); // nothing was applied: it comes again
  }
}).listen(Number(port), "127.0.0.1");
