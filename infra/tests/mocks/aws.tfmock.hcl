# What AWS would answer, as far as a policy or a check is made of it. Nothing is asked.

mock_data "aws_caller_identity" {
  defaults = { account_id = "123456789012" }
}

mock_data "aws_partition" {
  defaults = { partition = "aws" }
}

mock_data "aws_region" {
  defaults = { name = "eu-west-1" }
}

mock_resource "aws_kms_key" {
  defaults = {
    arn    = "arn:aws:kms:eu-west-1:123456789012:key/11111111-1111-1111-1111-111111111111"
    key_id = "11111111-1111-1111-1111-111111111111"
  }
}

mock_resource "aws_dynamodb_table" {
  defaults = { arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/ledger" }
}

mock_resource "aws_s3_bucket" {
  defaults = { arn = "arn:aws:s3:::bucket" }
}

mock_resource "aws_cloudwatch_log_group" {
  defaults = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:log" }
}

mock_resource "aws_iam_role" {
  defaults = { arn = "arn:aws:iam::123456789012:role/role" }
}

mock_resource "aws_lambda_function" {
  defaults = {
    arn        = "arn:aws:lambda:eu-west-1:123456789012:function:function"
    invoke_arn = "arn:aws:apigateway:eu-west-1:lambda:path/2015-03-31/functions/arn:aws:lambda:eu-west-1:123456789012:function:function/invocations"
  }
}

mock_resource "aws_scheduler_schedule_group" {
  defaults = { arn = "arn:aws:scheduler:eu-west-1:123456789012:schedule-group/group" }
}

mock_resource "aws_apigatewayv2_api" {
  defaults = { execution_arn = "arn:aws:execute-api:eu-west-1:123456789012:api" }
}

mock_resource "aws_sqs_queue" {
  defaults = { arn = "arn:aws:sqs:eu-west-1:123456789012:queue", url = "https://sqs/queue" }
}

mock_resource "aws_sns_topic" {
  defaults = { arn = "arn:aws:sns:eu-west-1:123456789012:topic" }
}

mock_resource "aws_cloudwatch_metric_alarm" {
  defaults = { arn = "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:alarm" }
}

mock_resource "aws_cloudwatch_composite_alarm" {
  defaults = { arn = "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:composite" }
}
