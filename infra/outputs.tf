# What the command line asks for (`waybill --backend aws`), and where events go in.

output "consumer_timeout_s" {
  description = "How long the consumer runs: WAYBILL_CONSUMER_TIMEOUT_S, what `waybill config check --backend aws` holds a destination's timeout to."
  value       = var.consumer_timeout_s
}

output "table" {
  description = "The ledger: WAYBILL_TABLE."
  value       = aws_dynamodb_table.ledger.name
}

output "queue_url" {
  description = "The wake-ups: WAYBILL_QUEUE_URL."
  value       = aws_sqs_queue.wake_ups.url
}

output "dlq_url" {
  description = "The dead letters: WAYBILL_DLQ_URL."
  value       = aws_sqs_queue.dead_letters.url
}

output "schedule_dlq_url" {
  description = "Minutes in which the reconciler could not run."
  value       = aws_sqs_queue.schedule_dead_letters.url
}

output "bucket" {
  description = "Large payloads and configuration revisions: WAYBILL_BUCKET."
  value       = aws_s3_bucket.this.bucket
}

output "ingest_url" {
  description = "Producers post to this, followed by /v1/events."
  value = (
    local.http_api ? aws_apigatewayv2_stage.ingest[0].invoke_url :
    local.function_url ? aws_lambda_function_url.ingest[0].function_url : null
  )
}

output "functions" {
  description = "The functions' names: ingest, consumer, reconciler."
  value       = { for name, function in aws_lambda_function.this : name => function.function_name }
}

output "event_source_mapping" {
  description = "The mapping from queue to consumer, to stop and start consumption by hand."
  value       = aws_lambda_event_source_mapping.wake_ups.uuid
}

output "kms_key_arn" {
  description = "The key under which everything is encrypted."
  value       = local.kms_key_arn
}

output "operator_policies" {
  description = "The policies for operators, to be attached to the roles of your people: operator-TENANT for each of operator_tenants, and operator-across-tenants."
  value       = { for name, policy in aws_iam_policy.operator : name => policy.arn }
}

output "alarm_topics" {
  description = "The topics that alarms publish to, by urgency: page and review. Subscribe your people to them."
  value       = { for urgency, arns in local.topics : urgency => one(arns) }
}

output "dashboard" {
  description = "The dashboard's name."
  value       = one(aws_cloudwatch_dashboard.this[*].dashboard_name)
}
