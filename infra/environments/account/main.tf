# One environment in an AWS account. Credentials and region come from wherever every AWS tool takes
# them. The state is a file in this folder until a backend is configured: `backend.tf` is yours.

terraform {
  required_version = ">= 1.6"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

provider "aws" {}

module "waybill" {
  source = "../.."

  environment  = var.environment
  family       = var.family
  architecture = var.architecture
  keep_data    = var.keep_data
  tags         = var.tags

  packages = {
    for function in ["ingest", "consumer", "reconciler"] :
    function => "${path.module}/../../../target/package/${var.architecture}/${function}.zip"
  }

  producer_secrets     = var.producer_secrets
  recipient_secrets    = var.recipient_secrets
  secrets_kms_key_arns = var.secrets_kms_key_arns
  maximum_concurrency  = var.maximum_concurrency
  operator_tenants     = var.operator_tenants

  slo              = var.slo
  destinations     = var.destinations
  page_topic_arn   = var.page_topic_arn
  review_topic_arn = var.review_topic_arn
}
