# One role per function, with the very actions that it takes on the very resources that it takes
# them on. The policies are plain data, so that `terraform test` reads what would be granted.

locals {
  function_assume_role = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "lambda.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })

  payloads_arn      = "${aws_s3_bucket.this.arn}/${local.payload_prefix}*"
  configuration_arn = "${aws_s3_bucket.this.arn}/${local.configuration_prefix}*"

  # Both secrets stores, split by ARN.
  secrets = { ingest = var.producer_secrets, consumer = var.recipient_secrets, reconciler = [] }

  # What each function does besides writing its log and reading its secrets.
  grants = {
    # Stores payload and record, then sends the wake-up.
    ingest = [
      {
        Sid      = "Ledger"
        Effect   = "Allow"
        Action   = ["dynamodb:GetItem", "dynamodb:PutItem"]
        Resource = [aws_dynamodb_table.ledger.arn]
      },
      {
        Sid      = "ReadHolds"
        Effect   = "Allow"
        Action   = ["dynamodb:Query"]
        Resource = ["${aws_dynamodb_table.ledger.arn}/index/held"]
      },
      {
        Sid      = "SendWakeUps"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = [aws_sqs_queue.wake_ups.arn]
      },
      {
        Sid      = "StorePayloads"
        Effect   = "Allow"
        Action   = ["s3:PutObject"]
        Resource = [local.payloads_arn]
      },
      {
        Sid      = "ReadConfiguration"
        Effect   = "Allow"
        Action   = ["s3:GetObject"]
        Resource = [local.configuration_arn]
      },
    ]

    # Fed by the queue; claims, sends, settles, hands off.
    consumer = [
      {
        Sid      = "ReadHolds"
        Effect   = "Allow"
        Action   = ["dynamodb:Query"]
        Resource = ["${aws_dynamodb_table.ledger.arn}/index/held"]
      },
      {
        Sid      = "BeFedByTheQueue"
        Effect   = "Allow"
        Action   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"]
        Resource = [aws_sqs_queue.wake_ups.arn]
      },
      {
        Sid      = "HandOff"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = [aws_sqs_queue.wake_ups.arn, aws_sqs_queue.dead_letters.arn]
      },
      {
        Sid      = "Ledger"
        Effect   = "Allow"
        Action   = ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"]
        Resource = [aws_dynamodb_table.ledger.arn]
      },
      {
        Sid      = "ReadPayloadsAndConfiguration"
        Effect   = "Allow"
        Action   = ["s3:GetObject"]
        Resource = [local.payloads_arn, local.configuration_arn]
      },
      {
        # Without it S3 answers "access denied" for a payload that is not there.
        Sid      = "TellMissingPayloads"
        Effect   = "Allow"
        Action   = ["s3:ListBucket"]
        Resource = [aws_s3_bucket.this.arn]
      },
    ]

    # Asks the indexes what is due, rereads, and wakes, expires or hands off.
    reconciler = [
      {
        Sid      = "Ledger"
        Effect   = "Allow"
        Action   = ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"]
        Resource = [aws_dynamodb_table.ledger.arn]
      },
      {
        Sid      = "AskIndexes"
        Effect   = "Allow"
        Action   = ["dynamodb:Query"]
        Resource = [for index in ["open", "held", "dead"] : "${aws_dynamodb_table.ledger.arn}/index/${index}"]
      },
      {
        Sid      = "HandOff"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = [aws_sqs_queue.wake_ups.arn, aws_sqs_queue.dead_letters.arn]
      },
      {
        Sid      = "ReadConfiguration"
        Effect   = "Allow"
        Action   = ["s3:GetObject"]
        Resource = [local.configuration_arn]
      },
      {
        Sid      = "SweepDeadLetters"
        Effect   = "Allow"
        Action   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"]
        Resource = [aws_sqs_queue.dead_letters.arn]
      },
      {
        Sid      = "ReportFailedMinutes"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = [aws_sqs_queue.schedule_dead_letters.arn]
      },
    ]
  }

  # What all of them do. Statements without a resource are left out below.
  common_grants = {
    for name in keys(local.functions) : name => [
      {
        Sid      = "WriteLog"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = ["${aws_cloudwatch_log_group.function[name].arn}:log-stream:*"]
      },
      {
        Sid      = "UseKey"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:DescribeKey"]
        Resource = [local.kms_key_arn]
        Condition = {
          StringEquals = {
            "kms:ViaService" = [for service in ["dynamodb", "s3", "sqs"] : "${service}.${local.region}.amazonaws.com"]
          }
        }
      },
      {
        Sid      = "ReadParameters"
        Effect   = "Allow"
        Action   = ["ssm:GetParameter"]
        Resource = [for arn in local.secrets[name] : arn if strcontains(arn, ":ssm:")]
      },
      {
        Sid      = "ReadSecrets"
        Effect   = "Allow"
        Action   = ["secretsmanager:GetSecretValue"]
        Resource = [for arn in local.secrets[name] : arn if strcontains(arn, ":secretsmanager:")]
      },
      {
        Sid      = "DecryptSecrets"
        Effect   = "Allow"
        Action   = ["kms:Decrypt"]
        Resource = [for arn in var.secrets_kms_key_arns : arn if length(local.secrets[name]) > 0]
        Condition = {
          StringEquals = {
            "kms:ViaService" = [for service in ["secretsmanager", "ssm"] : "${service}.${local.region}.amazonaws.com"]
          }
        }
      },
    ]
  }
}

resource "aws_iam_role" "function" {
  for_each = local.functions

  name                 = "${local.name}-${each.key}"
  assume_role_policy   = local.function_assume_role
  permissions_boundary = var.permissions_boundary
  tags                 = local.tags
}

resource "aws_iam_role_policy" "function" {
  for_each = local.functions

  name = each.key
  role = aws_iam_role.function[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      for grant in concat(local.grants[each.key], local.common_grants[each.key]) : grant
      if length(grant.Resource) > 0
    ]
  })
}

# The schedule's own role: it starts the reconciler, and reports minutes that it could not start.
resource "aws_iam_role" "scheduler" {
  name                 = "${local.name}-scheduler"
  permissions_boundary = var.permissions_boundary
  tags                 = local.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "scheduler.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = {
        StringEquals = {
          "aws:SourceAccount" = local.account
          "aws:SourceArn"     = aws_scheduler_schedule_group.this.arn
        }
      }
    }]
  })
}

resource "aws_iam_role_policy" "scheduler" {
  name = "scheduler"
  role = aws_iam_role.scheduler.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "StartReconciler"
        Effect   = "Allow"
        Action   = ["lambda:InvokeFunction"]
        Resource = [aws_lambda_function.this["reconciler"].arn]
      },
      {
        Sid      = "ReportFailedMinutes"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = [aws_sqs_queue.schedule_dead_letters.arn]
      },
      {
        Sid      = "UseKey"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource = [local.kms_key_arn]
      },
    ]
  })
}
