# What the service is held to, who is told, and who owns what. Every alarm's threshold comes from here.

variable "slo" {
  description = "Service-level objectives, from which the alarms derive: how long 95 of 100 deliveries that needed a retry may take to their success; how many of 100 that ended may have missed their deadline, over an hour; how long a delivery that may go may lie; how near a deadline may come before the delivery was made (the reconciler looks at what comes within rescue_window, 600 s unless configured otherwise); how long a schedule's result may take; how long a dead letter may wait for a person; how long anything may be held; how long 95 of 100 attempts may take."
  type = object({
    retry_to_success_s    = optional(number, 900)
    deadline_miss_percent = optional(number, 0.1)
    oldest_due_s          = optional(number, 600)
    deadline_slack_s      = optional(number, 600)
    schedule_to_result_s  = optional(number, 21600)
    dead_letter_review_s  = optional(number, 86400)
    held_s                = optional(number, 14400)
    attempt_duration_s    = optional(number, 10)
  })
  default = {}

  validation {
    condition     = alltrue([for objective in values(var.slo) : objective > 0]) && var.slo.deadline_miss_percent <= 100
    error_message = "slo: each greater than 0, deadline_miss_percent at most 100."
  }
}

variable "destinations" {
  description = "Destinations with metrics = true in the configuration, and whom to call: each has alarms of its own that name its owner, and stands on the dashboard with them."
  type        = map(object({ owner = string }))
  default     = {}

  validation {
    condition = alltrue([
      for name, destination in var.destinations : can(regex("^[A-Za-z0-9._-]{1,64}$", name)) && can(regex("^[^|`\\n]{1,128}$", destination.owner))
    ])
    error_message = "destinations: names of 1 to 64 of A-Z a-z 0-9 . _ -, owners of 1 to 128 characters on one line."
  }
}

variable "page_topic_arn" {
  description = "The SNS topic for what must be looked at now. Absent: one is made, encrypted, without subscribers (output alarm_topics)."
  type        = string
  default     = null
}

variable "review_topic_arn" {
  description = "The SNS topic for what can wait until the morning. Absent: one is made like the other."
  type        = string
  default     = null
}

variable "alarms" {
  description = "Whether alarms, their topics and the dashboard are made. false only where the APIs are missing (emulators)."
  type        = bool
  default     = true
}

variable "log_queries" {
  description = "Whether the log queries are made. false only where the API is missing (emulators)."
  type        = bool
  default     = true
}

variable "runbook" {
  description = "Where your people find the runbook; every alarm's text names its page there."
  type        = string
  default     = "docs/RUNBOOK.md"

  validation {
    condition     = length(var.runbook) <= 200
    error_message = "runbook: at most 200 characters."
  }
}

# --- who is told ------------------------------------------------------------------------------

locals {
  given_topics = { page = var.page_topic_arn, review = var.review_topic_arn }
  made_topics  = var.alarms ? toset([for urgency, arn in local.given_topics : urgency if arn == null]) : toset([])

  topics = {
    for urgency, arn in local.given_topics :
    urgency => arn != null ? [arn] : [for name, topic in aws_sns_topic.alarms : topic.arn if name == urgency]
  }
}

resource "aws_sns_topic" "alarms" {
  for_each = local.made_topics

  name              = "${local.name}-${each.key}"
  display_name      = "Waybill ${var.environment} ${var.family}: ${each.key}"
  kms_master_key_id = local.kms_key_arn
  tags              = local.tags
}

# This account's alarms publish, and nobody else.
resource "aws_sns_topic_policy" "alarms" {
  for_each = local.made_topics

  arn = aws_sns_topic.alarms[each.key].arn

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "AlarmsOfThisInstance"
        Effect    = "Allow"
        Principal = { Service = "cloudwatch.amazonaws.com" }
        Action    = "sns:Publish"
        Resource  = aws_sns_topic.alarms[each.key].arn
        Condition = {
          StringEquals = { "aws:SourceAccount" = local.account }
          ArnLike      = { "aws:SourceArn" = "arn:${local.partition}:cloudwatch:${local.region}:${local.account}:alarm:${local.name}-*" }
        }
      },
      {
        Sid       = "TlsOnly"
        Effect    = "Deny"
        Principal = "*"
        Action    = "sns:Publish"
        Resource  = aws_sns_topic.alarms[each.key].arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}
