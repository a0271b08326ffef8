# Wake-ups, and the letters of those that automation gave up. The ledger is the truth; a message
# only says "look at this delivery".

locals {
  # What AWS recommends for a queue that feeds a function: while Lambda retries throttled
  # invocations on its own, the message must stay hidden.
  least_visibility_s = 6 * var.consumer_timeout_s + var.batching_window_s
  visibility_s       = var.visibility_timeout_s == null ? local.least_visibility_s : var.visibility_timeout_s

  # An envelope is under 1 KiB whatever the event is, and no code knows this limit. What is buried as
  # it came was in the other queue before, so that both have the same.
  max_message_bytes = 262144
}

resource "aws_sqs_queue" "wake_ups" {
  name                              = local.name
  visibility_timeout_seconds        = local.visibility_s
  message_retention_seconds         = var.queue_retention_s
  max_message_size                  = local.max_message_bytes
  receive_wait_time_seconds         = 20
  kms_master_key_id                 = local.kms_key_arn
  kms_data_key_reuse_period_seconds = var.kms_data_key_reuse_s
  tags                              = local.tags

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letters.arn
    maxReceiveCount     = var.max_receive_count
  })

  lifecycle {
    precondition {
      condition     = local.visibility_s >= local.least_visibility_s
      error_message = "visibility_timeout_s is ${local.visibility_s}, but 6 times consumer_timeout_s plus batching_window_s is ${local.least_visibility_s}: a message would come back while its batch still runs."
    }

    precondition {
      condition     = local.visibility_s <= 43200
      error_message = "consumer_timeout_s and batching_window_s ask for a visibility timeout of ${local.visibility_s} s; SQS ends at 43200."
    }

    precondition {
      condition     = var.batch_size <= 10 || var.batching_window_s >= 1
      error_message = "batch_size above 10 needs a batching_window_s of at least 1."
    }
  }
}

resource "aws_sqs_queue" "dead_letters" {
  name                              = "${local.name}-dead-letters"
  message_retention_seconds         = var.dead_letter_retention_s
  max_message_size                  = local.max_message_bytes
  kms_master_key_id                 = local.kms_key_arn
  kms_data_key_reuse_period_seconds = var.kms_data_key_reuse_s
  tags                              = local.tags

  lifecycle {
    precondition {
      condition     = var.dead_letter_retention_s > var.queue_retention_s
      error_message = "dead_letter_retention_s is ${var.dead_letter_retention_s}, queue_retention_s ${var.queue_retention_s}: a message that SQS moves keeps its age, and would be gone as soon as it arrives."
    }
  }
}

# No other queue may use it, and a console's redrive can only go back to the one source.
resource "aws_sqs_queue_redrive_allow_policy" "dead_letters" {
  queue_url = aws_sqs_queue.dead_letters.id

  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.wake_ups.arn]
  })
}

# An emulator speaks plain HTTP, so there it would close the queues to everybody.
resource "aws_sqs_queue_policy" "tls_only" {
  for_each = {
    for name, queue in {
      wake_ups     = aws_sqs_queue.wake_ups
      dead_letters = aws_sqs_queue.dead_letters
      schedule     = aws_sqs_queue.schedule_dead_letters
    } : name => queue if !local.emulated
  }

  queue_url = each.value.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "TlsOnly"
      Effect    = "Deny"
      Principal = "*"
      Action    = "sqs:*"
      Resource  = each.value.arn
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
}
