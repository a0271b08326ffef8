# Ledger and bucket: what is kept, how long, and who can't reach it.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  environment = "test"
  packages    = { ingest = "tests/package.zip", consumer = "tests/package.zip", reconciler = "tests/package.zip" }
}

run "the_table_and_its_indexes" {
  assert {
    condition     = aws_dynamodb_table.ledger.billing_mode == "PAY_PER_REQUEST"
    error_message = "On demand."
  }

  assert {
    condition     = aws_dynamodb_table.ledger.hash_key == "pk" && aws_dynamodb_table.ledger.range_key == "sk"
    error_message = "Keys pk and sk."
  }

  # Read from the ledger's own source: the two cannot drift apart.
  assert {
    condition = toset([
      for index in aws_dynamodb_table.ledger.global_secondary_index :
      [index.name, index.hash_key, index.range_key] if index.projection_type == "KEYS_ONLY"
      ]) == toset(regexall(
      "Index \\{\\s*name: \"(\\w+)\",\\s*partition: \"(\\w+)\",\\s*sort: \"(\\w+)\",?\\s*\\}",
      file("../shared/aws/src/table.rs"),
    ))
    error_message = "The indexes are not those of shared/aws/src/table.rs."
  }

  assert {
    condition     = alltrue([for attribute in aws_dynamodb_table.ledger.attribute : attribute.type == "S"]) && length(aws_dynamodb_table.ledger.attribute) == 10
    error_message = "Two keys of the table and eight of indexes, all texts."
  }

  assert {
    condition     = aws_dynamodb_table.ledger.ttl[0].enabled && aws_dynamodb_table.ledger.ttl[0].attribute_name == "expires_at"
    error_message = "What ended long ago is cleaned up."
  }
}

run "the_table_is_safe_from_mistakes" {
  assert {
    condition = (
      aws_dynamodb_table.ledger.point_in_time_recovery[0].enabled &&
      aws_dynamodb_table.ledger.deletion_protection_enabled &&
      aws_dynamodb_table.ledger.server_side_encryption[0].kms_key_arn == output.kms_key_arn
    )
    error_message = "Recoverable, not deletable, under the key."
  }
}

run "the_bucket_is_private" {
  assert {
    condition = alltrue([
      aws_s3_bucket_public_access_block.this.block_public_acls,
      aws_s3_bucket_public_access_block.this.block_public_policy,
      aws_s3_bucket_public_access_block.this.ignore_public_acls,
      aws_s3_bucket_public_access_block.this.restrict_public_buckets,
      !aws_s3_bucket.this.force_destroy,
      jsondecode(aws_s3_bucket_policy.tls_only[0].policy).Statement[0].Effect == "Deny",
      jsondecode(aws_s3_bucket_policy.tls_only[0].policy).Statement[0].Condition.Bool["aws:SecureTransport"] == "false",
    ])
    error_message = "Nothing public, nothing over plain HTTP, not destroyed while it holds something."
  }
}

run "payloads_end_and_configurations_do_not" {
  assert {
    condition = [
      for rule in aws_s3_bucket_lifecycle_configuration.this.rule : [rule.filter[0].prefix, rule.expiration[0].days]
      if length(rule.expiration) > 0
    ] == [["payloads/", 90]]
    error_message = "Only what is under payloads/ expires."
  }
}

run "payloads_that_end_before_the_longest_window_fail_the_plan" {
  command = plan

  variables {
    payload_days        = 29
    longest_window_days = 30
  }

  expect_failures = [aws_s3_bucket_lifecycle_configuration.this]
}

run "payloads_that_just_last_are_accepted" {
  command = plan

  variables {
    payload_days        = 30
    longest_window_days = 30
  }
}

run "the_data_can_be_let_go_in_two_steps" {
  variables {
    keep_data = false
  }

  assert {
    condition     = !aws_dynamodb_table.ledger.deletion_protection_enabled && aws_s3_bucket.this.force_destroy
    error_message = "keep_data = false, apply, destroy."
  }
}

run "a_key_of_ones_own" {
  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/22222222-2222-2222-2222-222222222222"
  }

  assert {
    condition     = length(aws_kms_key.this) == 0 && output.kms_key_arn == var.kms_key_arn
    error_message = "No second key."
  }
}

run "an_alias_is_not_a_key" {
  command = plan

  variables {
    kms_key_arn = "alias/mine"
  }

  expect_failures = [var.kms_key_arn]
}
