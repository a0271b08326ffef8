# ingest takes events in, consumer is fed by the queue, reconciler looks every minute for what makes
# no progress.

locals {
  functions = {
    ingest     = { package = var.packages.ingest, timeout_s = var.ingest_timeout_s }
    consumer   = { package = var.packages.consumer, timeout_s = var.consumer_timeout_s }
    reconciler = { package = var.packages.reconciler, timeout_s = var.reconciler_timeout_s }
  }

  function_environment = merge(
    var.function_environment,
    {
      WAYBILL_TABLE     = aws_dynamodb_table.ledger.name
      WAYBILL_QUEUE_URL = aws_sqs_queue.wake_ups.url
      WAYBILL_DLQ_URL   = aws_sqs_queue.dead_letters.url
      WAYBILL_BUCKET    = aws_s3_bucket.this.bucket

      # Or two instances in one account would count into one another's metrics.
      WAYBILL_METRICS_NAMESPACE = local.metrics_namespace
    },
    # Never on AWS: http and loopback recipients are allowed only beside an endpoint on loopback.
    local.emulated ? { WAYBILL_ALLOW_LOCAL = "1" } : {},
    local.emulated && !try(var.emulator.containers, false) ? { AWS_ENDPOINT_URL = var.emulator.endpoint_url } : {},
  )
}

resource "aws_cloudwatch_log_group" "function" {
  #checkov:skip=CKV_AWS_338:the evidence of deliveries is in the ledger, kept for as long as it is configured; logs serve the search for faults

  for_each = local.functions

  name              = "/aws/lambda/${local.name}-${each.key}"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.kms_key_arn
  tags              = local.tags
}

resource "aws_lambda_function" "this" {
  #checkov:skip=CKV_AWS_50:the trace of a delivery is its ledger record; log lines carry its ID, and no X-Ray SDK is in the functions
  #checkov:skip=CKV_AWS_115:the consumer is bounded by the mapping's maximum concurrency, the reconciler by its schedule, ingest by the API's throttling; reserving would take from the account's pool, which a new account does not have
  #checkov:skip=CKV_AWS_116:the consumer and ingest are invoked synchronously; the reconciler's failures go to a queue by its event invoke config
  #checkov:skip=CKV_AWS_117:recipients are on the public internet and every address is judged before a connection; a VPC would add a NAT and no protection
  #checkov:skip=CKV_AWS_173:the variables name resources and hold no secrets: secrets are references, resolved at use
  #checkov:skip=CKV_AWS_272:zips are built and applied by the same hands; whoever has a signing profile adds it

  for_each = local.functions

  function_name    = "${local.name}-${each.key}"
  role             = aws_iam_role.function[each.key].arn
  filename         = each.value.package
  source_code_hash = filebase64sha256(each.value.package)
  package_type     = "Zip"
  runtime          = "provided.al2023"
  handler          = "bootstrap"
  architectures    = [var.architecture]
  memory_size      = var.memory_mb
  timeout          = each.value.timeout_s
  tags             = local.tags

  environment {
    variables = merge(local.function_environment, each.key == "consumer" ? { WAYBILL_BATCH_SIZE = tostring(var.batch_size) } : {})
  }

  # The functions write JSON lines themselves; this makes the platform's own lines JSON as well.
  logging_config {
    log_format       = "JSON"
    log_group        = aws_cloudwatch_log_group.function[each.key].name
    system_log_level = "INFO"
  }

  depends_on = [aws_iam_role_policy.function]
}

# Sending to one's own queue is the design.
resource "aws_lambda_function_recursion_config" "consumer" {
  count = var.allow_recursion ? 1 : 0

  function_name  = aws_lambda_function.this["consumer"].function_name
  recursive_loop = "Allow"
}

resource "aws_lambda_event_source_mapping" "wake_ups" {
  event_source_arn                   = aws_sqs_queue.wake_ups.arn
  function_name                      = aws_lambda_function.this["consumer"].arn
  batch_size                         = var.batch_size
  maximum_batching_window_in_seconds = var.batching_window_s
  function_response_types            = ["ReportBatchItemFailures"]

  scaling_config {
    maximum_concurrency = var.maximum_concurrency
  }

  tags = local.tags

  # A retry on the very first message must not be taken for a runaway loop.
  depends_on = [aws_lambda_function_recursion_config.consumer]
}
