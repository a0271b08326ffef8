# One instance of this module is one environment and one event family: its queues, its ledger, its
# functions. Works with Terraform and with OpenTofu; `terraform test` needs 1.7, `tofu test` 1.8.

terraform {
  required_version = ">= 1.6"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  name      = "waybill-${var.environment}-${var.family}"
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.name

  tags = merge(var.tags, {
    application = "waybill"
    environment = var.environment
    family      = var.family
  })

  emulated = var.emulator != null
}
