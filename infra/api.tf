# The way in: an HTTP API on AWS. Who may publish is decided by ingest, over the raw bytes.

locals {
  routes = var.emulator == null ? local.all_routes : var.emulator.function_url ? [] : local.all_routes

  all_routes = [
    "POST /v1/events",
    "POST /v1/sources/{source}",
    "GET /v1/openapi.json",
  ]

  http_api     = length(local.routes) > 0
  function_url = local.emulated && !local.http_api
}

resource "aws_apigatewayv2_api" "ingest" {
  count = local.http_api ? 1 : 0

  name          = "${local.name}-ingest"
  description   = "Waybill: events come in here."
  protocol_type = "HTTP"
  tags          = local.tags
}

resource "aws_apigatewayv2_integration" "ingest" {
  count = local.http_api ? 1 : 0

  api_id                 = aws_apigatewayv2_api.ingest[0].id
  integration_type       = "AWS_PROXY"
  integration_method     = "POST"
  integration_uri        = aws_lambda_function.this["ingest"].invoke_arn
  payload_format_version = "2.0"
  timeout_milliseconds   = 30000
}

resource "aws_apigatewayv2_route" "ingest" {
  #checkov:skip=CKV_AWS_309:producers and webhook sources hold bearer tokens or signing secrets, which ingest verifies over the raw bytes; they have no AWS identities

  for_each = toset(local.routes)

  api_id             = aws_apigatewayv2_api.ingest[0].id
  route_key          = each.value
  target             = "integrations/${aws_apigatewayv2_integration.ingest[0].id}"
  authorization_type = "NONE"
}

resource "aws_apigatewayv2_stage" "ingest" {
  count = local.http_api ? 1 : 0

  api_id      = aws_apigatewayv2_api.ingest[0].id
  name        = "$default"
  auto_deploy = true
  tags        = local.tags

  default_route_settings {
    throttling_rate_limit    = var.ingest_rate_per_s
    throttling_burst_limit   = var.ingest_burst
    detailed_metrics_enabled = true
  }

  # Neither query nor headers nor bodies: only what is needed to find a request again.
  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.access[0].arn
    format = jsonencode({
      request_id        = "$context.requestId"
      time              = "$context.requestTimeEpoch"
      source_ip         = "$context.identity.sourceIp"
      method            = "$context.httpMethod"
      route             = "$context.routeKey"
      status            = "$context.status"
      response_bytes    = "$context.responseLength"
      latency_ms        = "$context.responseLatency"
      function_ms       = "$context.integrationLatency"
      integration_error = "$context.integrationErrorMessage"
    })
  }
}

resource "aws_cloudwatch_log_group" "access" {
  #checkov:skip=CKV_AWS_338:the evidence of deliveries is in the ledger, kept for as long as it is configured; logs serve the search for faults

  count = local.http_api ? 1 : 0

  name              = "/aws/vendedlogs/${local.name}-ingest"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.kms_key_arn
  tags              = local.tags
}

resource "aws_lambda_permission" "http_api" {
  for_each = toset(local.routes)

  statement_id  = "http-api-${substr(sha256(each.value), 0, 8)}"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.this["ingest"].function_name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.ingest[0].execution_arn}/*/${replace(each.value, " ", "")}"
}

# Local only: the same event (payload format 2.0) without an HTTP API. Neither throttled nor logged.
resource "aws_lambda_function_url" "ingest" {
  #checkov:skip=CKV_AWS_258:exists only beside an emulator on loopback (var.emulator); on AWS the count is 0

  count = local.function_url ? 1 : 0

  function_name      = aws_lambda_function.this["ingest"].function_name
  authorization_type = "NONE"
}
