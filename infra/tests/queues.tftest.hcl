# Queues, their checks, and the mapping that feeds the consumer. Offline: nothing asks AWS.

mock_provider "aws" {
  source = "./tests/mocks"

  override_resource {
    target = aws_sqs_queue.wake_ups
    values = { arn = "arn:aws:sqs:eu-west-1:123456789012:wake-ups", url = "https://sqs/wake-ups", id = "https://sqs/wake-ups" }
  }
  override_resource {
    target = aws_sqs_queue.dead_letters
    values = { arn = "arn:aws:sqs:eu-west-1:123456789012:dead-letters", url = "https://sqs/dead-letters", id = "https://sqs/dead-letters" }
  }
  override_resource {
    target = aws_sqs_queue.schedule_dead_letters
    values = { arn = "arn:aws:sqs:eu-west-1:123456789012:schedule", url = "https://sqs/schedule", id = "https://sqs/schedule" }
  }
}

variables {
  environment = "test"
  packages    = { ingest = "tests/package.zip", consumer = "tests/package.zip", reconciler = "tests/package.zip" }
}

run "c31_every_mapping_from_a_queue_reports_single_failures" {
  assert {
    condition     = aws_lambda_event_source_mapping.wake_ups.function_response_types == toset(["ReportBatchItemFailures"])
    error_message = "Without ReportBatchItemFailures, Lambda deletes what the handler reported as failed."
  }

  # That there is no other mapping that this test does not look at is read from the sources.
  assert {
    condition = length([aws_lambda_event_source_mapping.wake_ups]) == sum([
      for file in fileset(".", "*.tf") : length(regexall("resource \"aws_lambda_event_source_mapping\"", file(file)))
    ])
    error_message = "A new event source mapping needs its own assertion here."
  }
}

run "c25_what_one_queue_takes_the_other_takes_too" {
  assert {
    condition     = aws_sqs_queue.dead_letters.max_message_size == aws_sqs_queue.wake_ups.max_message_size
    error_message = "A body that came in must fit into the dead-letter queue as it is."
  }
}

run "the_mapping_is_bounded" {
  assert {
    condition     = aws_lambda_event_source_mapping.wake_ups.batch_size == 10
    error_message = "Batches of ten."
  }

  assert {
    condition     = aws_lambda_event_source_mapping.wake_ups.scaling_config[0].maximum_concurrency == 20
    error_message = "The maximum concurrency is the global limit; it must be set."
  }
}

run "visibility_follows_the_timeout" {
  assert {
    condition     = aws_sqs_queue.wake_ups.visibility_timeout_seconds == 360
    error_message = "6 times 60 s."
  }
}

run "visibility_follows_timeout_and_window" {
  variables {
    consumer_timeout_s = 20
    batching_window_s  = 5
  }

  assert {
    condition     = aws_sqs_queue.wake_ups.visibility_timeout_seconds == 125
    error_message = "6 times 20 s, and 5 s."
  }
}

run "a_visibility_too_short_fails_the_plan" {
  command = plan

  variables {
    consumer_timeout_s   = 60
    batching_window_s    = 5
    visibility_timeout_s = 364
  }

  expect_failures = [aws_sqs_queue.wake_ups]
}

run "the_least_visibility_is_accepted" {
  command = plan

  variables {
    consumer_timeout_s   = 60
    batching_window_s    = 5
    visibility_timeout_s = 365
  }
}

run "a_batch_above_ten_without_a_window_fails_the_plan" {
  command = plan

  variables {
    batch_size = 11
  }

  expect_failures = [aws_sqs_queue.wake_ups]
}

run "dead_letters_outlive_their_source" {
  assert {
    condition     = aws_sqs_queue.dead_letters.message_retention_seconds == 1209600
    error_message = "14 days."
  }

  assert {
    condition     = aws_sqs_queue.dead_letters.message_retention_seconds > aws_sqs_queue.wake_ups.message_retention_seconds
    error_message = "A message that SQS moves keeps its age."
  }
}

run "dead_letters_that_do_not_outlive_their_source_fail_the_plan" {
  command = plan

  variables {
    queue_retention_s       = 345600
    dead_letter_retention_s = 345600
  }

  expect_failures = [aws_sqs_queue.dead_letters]
}

run "the_redrive_policy_and_its_way_back" {
  assert {
    condition = jsondecode(aws_sqs_queue.wake_ups.redrive_policy) == {
      deadLetterTargetArn = "arn:aws:sqs:eu-west-1:123456789012:dead-letters"
      maxReceiveCount     = 6
    }
    error_message = "Six receives, then the dead-letter queue."
  }

  assert {
    condition = jsondecode(aws_sqs_queue_redrive_allow_policy.dead_letters.redrive_allow_policy) == {
      redrivePermission = "byQueue"
      sourceQueueArns   = ["arn:aws:sqs:eu-west-1:123456789012:wake-ups"]
    }
    error_message = "One source, named."
  }
}

run "a_receive_count_of_one_is_refused" {
  command = plan

  variables {
    max_receive_count = 1
  }

  expect_failures = [var.max_receive_count]
}

run "queues_are_encrypted_and_closed_to_plain_http" {
  assert {
    condition = alltrue([
      for queue in [aws_sqs_queue.wake_ups, aws_sqs_queue.dead_letters, aws_sqs_queue.schedule_dead_letters] :
      queue.kms_master_key_id == output.kms_key_arn
    ])
    error_message = "Every queue under the key."
  }

  assert {
    condition = alltrue([
      for policy in aws_sqs_queue_policy.tls_only :
      jsondecode(policy.policy).Statement[0].Effect == "Deny" &&
      jsondecode(policy.policy).Statement[0].Condition.Bool["aws:SecureTransport"] == "false"
    ]) && length(aws_sqs_queue_policy.tls_only) == 3
    error_message = "Every queue refuses plain HTTP."
  }
}
