# The reconciler's minute. It asks the ledger and never the schedule's history, so a minute that is
# missed, late or doubled changes nothing.

resource "aws_scheduler_schedule_group" "this" {
  name = local.name
  tags = local.tags
}

resource "aws_scheduler_schedule" "reconciler" {
  name                = "${local.name}-reconciler"
  description         = "Looks every minute for deliveries that make no progress."
  group_name          = aws_scheduler_schedule_group.this.name
  schedule_expression = "rate(1 minutes)"
  kms_key_arn         = local.kms_key_arn

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_lambda_function.this["reconciler"].arn
    role_arn = aws_iam_role.scheduler.arn

    dead_letter_config {
      arn = aws_sqs_queue.schedule_dead_letters.arn
    }

    # The next minute looks anyway: an older look is worth nothing.
    retry_policy {
      maximum_event_age_in_seconds = 60
      maximum_retry_attempts       = 1
    }
  }
}

# Lambda's own half of the way: the schedule invokes asynchronously.
resource "aws_lambda_function_event_invoke_config" "reconciler" {
  function_name                = aws_lambda_function.this["reconciler"].function_name
  maximum_event_age_in_seconds = 60
  maximum_retry_attempts       = 0

  destination_config {
    on_failure {
      destination = aws_sqs_queue.schedule_dead_letters.arn
    }
  }
}

# Minutes in which the reconciler could not be started or failed. Never fed back into anything.
resource "aws_sqs_queue" "schedule_dead_letters" {
  name                              = "${local.name}-schedule-dead-letters"
  message_retention_seconds         = 1209600
  kms_master_key_id                 = local.kms_key_arn
  kms_data_key_reuse_period_seconds = var.kms_data_key_reuse_s
  tags                              = local.tags
}
