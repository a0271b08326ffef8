# The ledger: what should have happened to every delivery, what did, and why automation stopped.

locals {
  # All sparse and keys only: a reader takes keys from them and reads the record strongly. Every key
  # is a text, built so that it sorts as it must; the names are those of shared/aws/src/table.rs.
  indexes = {
    open   = { partition = "open_shard", sort = "look_order" } # what is due for a look
    held   = { partition = "held_to", sort = "release_order" } # what waits for a hold to lift
    dead   = { partition = "dead_shard", sort = "dead_order" } # dead letters
    by_day = { partition = "day", sort = "queued_order" }      # all, by the day of publishing
  }

  key_attributes = concat(["pk", "sk"], flatten([for index in local.indexes : [index.partition, index.sort]]))
}

resource "aws_dynamodb_table" "ledger" {
  name                        = local.name
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  range_key                   = "sk"
  deletion_protection_enabled = var.keep_data
  tags                        = local.tags

  dynamic "attribute" {
    for_each = toset(local.key_attributes)
    content {
      name = attribute.key
      type = "S"
    }
  }

  dynamic "global_secondary_index" {
    for_each = local.indexes
    content {
      name            = global_secondary_index.key
      hash_key        = global_secondary_index.value.partition
      range_key       = global_secondary_index.value.sort
      projection_type = "KEYS_ONLY"
    }
  }

  # Only cleans up, long after the end: no condition relies on it.
  ttl {
    attribute_name = "expires_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = local.kms_key_arn
  }
}
