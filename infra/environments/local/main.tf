# The same module against an emulator of AWS on this machine. Applied by `make aws-local`.

terraform {
  required_version = ">= 1.6"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

provider "aws" {
  region                      = "us-east-1"
  access_key                  = "test" # what every emulator takes; no secret
  secret_key                  = "test"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true
  skip_region_validation      = true
  s3_use_path_style           = true

  endpoints {
    apigatewayv2   = var.endpoint_url
    cloudwatch     = var.endpoint_url
    cloudwatchlogs = var.endpoint_url
    dynamodb       = var.endpoint_url
    iam            = var.endpoint_url
    kms            = var.endpoint_url
    lambda         = var.endpoint_url
    s3             = var.endpoint_url
    scheduler      = var.endpoint_url
    secretsmanager = var.endpoint_url
    sns            = var.endpoint_url
    sqs            = var.endpoint_url
    ssm            = var.endpoint_url
    sts            = var.endpoint_url
  }
}

module "waybill" {
  source = "../.."

  environment            = "local"
  family                 = "events"
  architecture           = var.architecture
  packages               = { for function in ["ingest", "consumer", "reconciler"] : function => "${var.packages}/${function}.zip" }
  function_environment   = var.function_environment
  producer_secrets       = var.producer_secrets
  recipient_secrets      = var.recipient_secrets
  operator_tenants       = var.operator_tenants
  consumer_timeout_s     = var.consumer_timeout_s
  max_receive_count      = var.max_receive_count
  maximum_concurrency    = var.maximum_concurrency
  allow_recursion        = var.allow_recursion
  point_in_time_recovery = var.point_in_time_recovery
  alarms                 = var.alarms
  log_queries            = var.log_queries
  keep_data              = false
  log_retention_days     = 1

  emulator = {
    endpoint_url = var.endpoint_url
    function_url = var.function_url
    containers   = var.functions_in_containers
  }
}
