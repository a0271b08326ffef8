output "ingest_url" {
  description = "Producers post to this, followed by /v1/events."
  value       = module.waybill.ingest_url
}

output "environment" {
  description = "What `waybill --backend aws` reads: `eval \"$(terraform output -raw environment)\"`."
  value = join("\n", [
    "export WAYBILL_TABLE='${module.waybill.table}'",
    "export WAYBILL_QUEUE_URL='${module.waybill.queue_url}'",
    "export WAYBILL_DLQ_URL='${module.waybill.dlq_url}'",
    "export WAYBILL_BUCKET='${module.waybill.bucket}'",
    "export WAYBILL_CONSUMER_TIMEOUT_S='${module.waybill.consumer_timeout_s}'",
  ])
}

output "operator_policies" {
  description = "To be attached to the roles of your operators."
  value       = module.waybill.operator_policies
}

output "alarm_topics" {
  description = "Subscribe your people to these: page and review."
  value       = module.waybill.alarm_topics
}
