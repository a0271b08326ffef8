# Functions, schedule, the way in, and what each role may do.

mock_provider "aws" {
  source = "./tests/mocks"

  override_resource {
    target = aws_sqs_queue.wake_ups
    values = { arn = "arn:aws:sqs:eu-west-1:123456789012:wake-ups", url = "https://sqs/wake-ups" }
  }
  override_resource {
    target = aws_sqs_queue.dead_letters
    values = { arn = "arn:aws:sqs:eu-west-1:123456789012:dead-letters", url = "https://sqs/dead-letters" }
  }
  override_resource {
    target = aws_sqs_queue.schedule_dead_letters
    values = { arn = "arn:aws:sqs:eu-west-1:123456789012:schedule", url = "https://sqs/schedule" }
  }
}

variables {
  environment = "test"
  packages    = { ingest = "tests/package.zip", consumer = "tests/package.zip", reconciler = "tests/package.zip" }
}

run "three_functions" {
  assert {
    condition = alltrue([
      for name in ["ingest", "consumer", "reconciler"] :
      aws_lambda_function.this[name].runtime == "provided.al2023" &&
      aws_lambda_function.this[name].architectures == tolist(["arm64"]) &&
      aws_lambda_function.this[name].memory_size == 512 &&
      aws_lambda_function.this[name].function_name == "waybill-test-events-${name}"
    ]) && length(aws_lambda_function.this) == 3
    error_message = "provided.al2023, arm64, 512 MB."
  }

  assert {
    condition     = aws_lambda_function.this["consumer"].timeout == 60
    error_message = "The consumer has 60 s for a batch."
  }

  assert {
    condition = alltrue([
      for function in aws_lambda_function.this :
      setsubtract(keys(function.environment[0].variables), ["WAYBILL_BATCH_SIZE"]) == toset(["WAYBILL_TABLE", "WAYBILL_QUEUE_URL", "WAYBILL_DLQ_URL", "WAYBILL_BUCKET", "WAYBILL_METRICS_NAMESPACE"])
    ])
    error_message = "They know where things are, and are not allowed to send to loopback."
  }

  assert {
    condition = alltrue([
      for group in aws_cloudwatch_log_group.function : group.retention_in_days == 30 && group.kms_key_id == output.kms_key_arn
    ]) && length(aws_cloudwatch_log_group.function) == 3
    error_message = "Logs end, and are encrypted."
  }
}

run "the_other_architecture" {
  variables {
    architecture = "x86_64"
  }

  assert {
    condition     = alltrue([for function in aws_lambda_function.this : function.architectures == tolist(["x86_64"])])
    error_message = "x86_64."
  }
}

run "an_unknown_architecture_is_refused" {
  command = plan

  variables {
    architecture = "riscv64"
  }

  expect_failures = [var.architecture]
}

run "sending_to_ones_own_queue_is_allowed_to_the_consumer" {
  assert {
    condition     = aws_lambda_function_recursion_config.consumer[0].recursive_loop == "Allow"
    error_message = "Recursion detection would end a delivery after some 16 retries."
  }

  assert {
    condition     = aws_lambda_function_recursion_config.consumer[0].function_name == "waybill-test-events-consumer"
    error_message = "On the consumer, and on no other function."
  }
}

run "the_reconciler_runs_every_minute_and_failures_are_kept" {
  assert {
    condition = (
      aws_scheduler_schedule.reconciler.schedule_expression == "rate(1 minutes)" &&
      aws_scheduler_schedule.reconciler.flexible_time_window[0].mode == "OFF" &&
      aws_scheduler_schedule.reconciler.target[0].dead_letter_config[0].arn == "arn:aws:sqs:eu-west-1:123456789012:schedule"
    )
    error_message = "Every minute, with a dead-letter queue of its own."
  }

  assert {
    condition = (
      aws_lambda_function_event_invoke_config.reconciler.maximum_retry_attempts == 0 &&
      aws_lambda_function_event_invoke_config.reconciler.destination_config[0].on_failure[0].destination == "arn:aws:sqs:eu-west-1:123456789012:schedule"
    )
    error_message = "A failed minute is reported and not repeated."
  }
}

run "the_way_in_is_throttled_and_logged" {
  assert {
    condition = (
      aws_apigatewayv2_stage.ingest[0].default_route_settings[0].throttling_rate_limit == 500 &&
      aws_apigatewayv2_stage.ingest[0].default_route_settings[0].throttling_burst_limit == 1000 &&
      aws_apigatewayv2_stage.ingest[0].access_log_settings[0].destination_arn == aws_cloudwatch_log_group.access[0].arn
    )
    error_message = "Throttled and logged."
  }

  # A query, an authorization header or a body must not get into the access log.
  assert {
    condition     = length(regexall("(?i)querystring|header|authoriz|body", aws_apigatewayv2_stage.ingest[0].access_log_settings[0].format)) == 0
    error_message = "The access log holds something that it must not."
  }

  assert {
    condition     = aws_apigatewayv2_integration.ingest[0].payload_format_version == "2.0" && length(aws_lambda_function_url.ingest) == 0
    error_message = "Payload format 2.0, and no function URL on AWS."
  }

  assert {
    condition = toset([for permission in aws_lambda_permission.http_api : permission.source_arn]) == toset([
      "arn:aws:execute-api:eu-west-1:123456789012:api/*/POST/v1/events",
      "arn:aws:execute-api:eu-west-1:123456789012:api/*/POST/v1/sources/{source}",
      "arn:aws:execute-api:eu-west-1:123456789012:api/*/GET/v1/openapi.json",
    ])
    error_message = "The API may invoke ingest for its own routes and for nothing else."
  }
}

run "an_emulator_has_a_function_url_instead" {
  variables {
    emulator = { endpoint_url = "http://127.0.0.1:4566", function_url = true }
  }

  assert {
    condition     = length(aws_apigatewayv2_api.ingest) == 0 && length(aws_lambda_function_url.ingest) == 1
    error_message = "One way in."
  }

  assert {
    condition     = aws_lambda_function.this["consumer"].environment[0].variables.WAYBILL_ALLOW_LOCAL == "1"
    error_message = "Beside an emulator, recipients on loopback are allowed."
  }

  assert {
    condition     = length(aws_sqs_queue_policy.tls_only) == 0 && length(aws_s3_bucket_policy.tls_only) == 0
    error_message = "An emulator speaks plain HTTP."
  }
}

run "an_emulator_elsewhere_is_refused" {
  command = plan

  variables {
    emulator = { endpoint_url = "https://sqs.eu-west-1.amazonaws.com" }
  }

  expect_failures = [var.emulator]
}

run "only_the_module_sets_its_own_variables" {
  command = plan

  variables {
    function_environment = { WAYBILL_ALLOW_LOCAL = "1" }
  }

  expect_failures = [var.function_environment]
}

run "no_role_has_more_than_it_takes" {
  assert {
    condition = jsonencode({
      for name, role in aws_iam_role_policy.function : name => {
        for grant in jsondecode(role.policy).Statement : grant.Sid => sort(grant.Action)
      }
      }) == jsonencode({
      ingest = {
        Ledger            = ["dynamodb:GetItem", "dynamodb:PutItem"]
        ReadHolds         = ["dynamodb:Query"]
        SendWakeUps       = ["sqs:SendMessage"]
        StorePayloads     = ["s3:PutObject"]
        ReadConfiguration = ["s3:GetObject"]
        WriteLog          = ["logs:CreateLogStream", "logs:PutLogEvents"]
        UseKey            = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"]
      }
      consumer = {
        BeFedByTheQueue              = ["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
        HandOff                      = ["sqs:SendMessage"]
        Ledger                       = ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"]
        ReadHolds                    = ["dynamodb:Query"]
        ReadPayloadsAndConfiguration = ["s3:GetObject"]
        TellMissingPayloads          = ["s3:ListBucket"]
        WriteLog                     = ["logs:CreateLogStream", "logs:PutLogEvents"]
        UseKey                       = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"]
      }
      reconciler = {
        Ledger              = ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"]
        AskIndexes          = ["dynamodb:Query"]
        HandOff             = ["sqs:SendMessage"]
        ReadConfiguration   = ["s3:GetObject"]
        SweepDeadLetters    = ["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage"]
        ReportFailedMinutes = ["sqs:SendMessage"]
        WriteLog            = ["logs:CreateLogStream", "logs:PutLogEvents"]
        UseKey              = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"]
      }
    })
    error_message = "A role's actions changed: say so here, with the reason in roles.tf."
  }

  assert {
    condition = alltrue(flatten([
      for role in concat(values(aws_iam_role_policy.function), [aws_iam_role_policy.scheduler]) : [
        for grant in jsondecode(role.policy).Statement : [
          for action in grant.Action : !strcontains(action, "*")
        ]
      ]
    ]))
    error_message = "Actions are named, without *."
  }

  # Only streams of one's own log group and objects under one's own prefix end in a *.
  assert {
    condition = alltrue(flatten([
      for role in concat(values(aws_iam_role_policy.function), [aws_iam_role_policy.scheduler]) : [
        for grant in jsondecode(role.policy).Statement : [
          for resource in grant.Resource : length(regexall("^arn:[^*]+(:log-stream:\\*|/payloads/\\*|/config/\\*)?$", resource)) == 1
        ]
      ]
    ]))
    error_message = "Resources are named."
  }

  assert {
    condition = alltrue([
      for grant in jsondecode(aws_iam_role_policy.function["ingest"].policy).Statement :
      !contains(grant.Resource, "arn:aws:sqs:eu-west-1:123456789012:dead-letters")
    ])
    error_message = "ingest does not reach the dead-letter queue."
  }
}

run "secrets_are_read_by_the_one_function_that_needs_them" {
  variables {
    producer_secrets     = ["arn:aws:ssm:eu-west-1:123456789012:parameter/waybill/billing"]
    recipient_secrets    = ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:acme-AbCdEf"]
    secrets_kms_key_arns = ["arn:aws:kms:eu-west-1:123456789012:key/33333333-3333-3333-3333-333333333333"]
  }

  assert {
    condition = {
      for name, role in aws_iam_role_policy.function : name => [
        for grant in jsondecode(role.policy).Statement : [grant.Sid, grant.Action[0], grant.Resource[0]]
        if contains(["ReadParameters", "ReadSecrets", "DecryptSecrets"], grant.Sid)
      ]
      } == {
      ingest = [
        ["ReadParameters", "ssm:GetParameter", "arn:aws:ssm:eu-west-1:123456789012:parameter/waybill/billing"],
        ["DecryptSecrets", "kms:Decrypt", "arn:aws:kms:eu-west-1:123456789012:key/33333333-3333-3333-3333-333333333333"],
      ]
      consumer = [
        ["ReadSecrets", "secretsmanager:GetSecretValue", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:acme-AbCdEf"],
        ["DecryptSecrets", "kms:Decrypt", "arn:aws:kms:eu-west-1:123456789012:key/33333333-3333-3333-3333-333333333333"],
      ]
      reconciler = []
    }
    error_message = "Each secret to the function that uses it."
  }
}

run "a_secret_without_a_name_is_refused" {
  command = plan

  variables {
    recipient_secrets = ["arn:aws:ssm:eu-west-1:123456789012:parameter/*"]
  }

  expect_failures = [var.recipient_secrets]
}

run "only_this_environments_schedules_may_take_the_schedulers_role" {
  assert {
    condition = jsondecode(aws_iam_role.scheduler.assume_role_policy).Statement[0].Condition.StringEquals == {
      "aws:SourceAccount" = "123456789012"
      "aws:SourceArn"     = "arn:aws:scheduler:eu-west-1:123456789012:schedule-group/group"
    }
    error_message = "Nobody else's schedule."
  }
}
