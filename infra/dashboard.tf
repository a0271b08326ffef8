# What one looks at before and after an alarm: one dashboard, and log queries by whom it concerns.

locals {
  # Measured for people, and waking nobody. Every other metric of infra/metrics.json is in an alarm.
  looked_at_only = {
    AttemptsToEnd = "how policies do; nothing is wrong with any value"
    DeadlineSlack = "has the slack of successes in it, too; the nearest open delivery's is LeastDeadlineSlack, which is in an alarm"
    RetryAge      = "what is being retried and how old it is; how long it took to succeed is RetryToSuccess, which is in an alarm"
    Held          = "how many begin to be held, and why; how long it lasts is OldestHeldAge, and a suspension is told by Suspended: both are in alarms"
    OpenRuns      = "runs are a person's; one that goes wrong is told by RedriveSuccess"
  }

  ours = local.metrics_namespace
  by_reason = {
    for name in ["DeadLettered", "Held"] :
    name => [[{ expression = "SEARCH('{\"${local.ours}\",reason} MetricName=\"${name}\"', 'Sum', 300)", label = "" }]]
  }
  consumer = ["FunctionName", "${local.name}-consumer"]

  # Title, statistic, and lines as CloudWatch takes them; three to a row.
  graphs = [
    ["How deliveries end", "Sum", [for name in ["Delivered", "DeadLettered", "PermanentlyRejected", "Expired"] : [local.ours, name]]],
    ["Dead letters by reason", "Sum", local.by_reason.DeadLettered],
    ["Delivered by destination", "Sum", [[{ expression = "SEARCH('{\"${local.ours}\",destination} MetricName=\"Delivered\"', 'Sum', 300)", label = "" }]]],

    ["Slack to deadlines, in ms", "Minimum", [[local.ours, "LeastDeadlineSlack"], [local.ours, "DeadlineSlack", { stat = "p5" }]]],
    ["Deadlines missed, % of what ended", "Sum", [
      [{ expression = "100 * FILL(missed, 0) / (FILL(missed, 0) + FILL(delivered, 0) + FILL(dead, 0))", label = "missed" }],
      [local.ours, "Expired", { id = "missed", visible = false }],
      [local.ours, "Delivered", { id = "delivered", visible = false }],
      [local.ours, "DeadLettered", { id = "dead", visible = false }],
    ]],
    ["Oldest due, in ms (retries that wait for their time are no backlog)", "Maximum", [[local.ours, "OldestDueAge"]]],

    ["From queueing to success after a retry, in ms", "p95", [[local.ours, "RetryToSuccess"], [local.ours, "RetryToSuccess", { stat = "p50" }], [local.ours, "RetryAge"]]],
    ["Attempts, in ms", "p95", [for stat in ["p50", "p95", "p99"] : [local.ours, "AttemptDuration", { stat = stat }]]],
    ["Retries, 429s, attempts to the end", "Sum", [[local.ours, "RetryScheduled"], [local.ours, "RateLimited"], [local.ours, "AttemptsToEnd", { stat = "Average", yAxis = "right" }]]],

    ["Workers", "Average", [[local.ours, "WorkerSaturation"], concat(["AWS/Lambda", "ConcurrentExecutions"], local.consumer, [{ stat = "Maximum", yAxis = "right" }])]],
    ["Held by reason; suspensions", "Sum", concat(local.by_reason.Held, [[local.ours, "Suspended", { yAxis = "right" }]])],
    ["Held for, in ms, by reason", "Maximum", [[{ expression = "SEARCH('{\"${local.ours}\",reason} MetricName=\"OldestHeldAge\"', 'Maximum', 300)", label = "" }]]],

    ["Duplicates suppressed", "Sum", [[local.ours, "DuplicateSuppressed"]]],
    ["Redrives: success in %, open runs, oldest dead letter in ms", "Average", [[local.ours, "RedriveSuccess"], [local.ours, "OpenRuns", { stat = "Maximum" }], [local.ours, "OldestDeadLetterAge", { stat = "Maximum", yAxis = "right" }]]],
    ["Schedules, from firing to result, in ms; the reconciler's rounds", "Maximum", [[local.ours, "ScheduleToResult"], [local.ours, "Reconciled", { stat = "Sum", yAxis = "right" }]]],
  ]

  owners = length(var.destinations) == 0 ? "none is named: variable `destinations`; all are in `waybill destinations list`" : join(", ", [
    for name, destination in var.destinations : "${name}: ${destination.owner}"
  ])

  objectives = join("\n", [
    "## Waybill ${var.environment} ${var.family}",
    "Objectives: 95 % of retried deliveries succeed within ${var.slo.retry_to_success_s} s · at most ${var.slo.deadline_miss_percent} % of deadlines missed · nothing due for longer than ${var.slo.oldest_due_s} s.",
    "Owners: ${local.owners}.",
    "Runbook: ${var.runbook}",
  ])
}

resource "aws_cloudwatch_dashboard" "this" {
  count = var.alarms ? 1 : 0

  dashboard_name = local.name
  dashboard_body = jsonencode({
    widgets = concat(
      [
        { type = "text", x = 0, y = 0, width = 24, height = 4, properties = { markdown = local.objectives } },
        {
          type = "alarm", x = 0, y = 4, width = 24, height = 4
          properties = {
            title  = "Alarms"
            alarms = concat([for alarm in aws_cloudwatch_metric_alarm.this : alarm.arn], [for alarm in aws_cloudwatch_composite_alarm.this : alarm.arn])
          }
        },
      ],
      [
        for nth, graph in local.graphs : {
          type       = "metric", x = nth % 3 * 8, y = 8 + floor(nth / 3) * 6, width = 8, height = 6
          properties = { title = graph[0], stat = graph[1], metrics = graph[2], region = local.region, period = 300, view = "timeSeries" }
        }
      ],
    )
  })
}

# Fields are those of the log lines; a test runs the system and compares (`cli/tests/telemetry.rs`).
locals {
  queries = {
    tenant      = "filter tenant = \"TENANT\" | fields @timestamp, message, destination, scope, delivery_id, attempt, outcome, class, reason, state | sort @timestamp desc | limit 500"
    scope       = "filter scope = \"SCOPE\" | fields @timestamp, message, tenant, destination, delivery_id, attempt, outcome, class, reason, state | sort @timestamp desc | limit 500"
    destination = "filter destination = \"DESTINATION\" | fields @timestamp, message, tenant, scope, delivery_id, attempt, status, outcome, class, duration_ms, reason, state | sort @timestamp desc | limit 500"
    delivery    = "filter delivery_id = \"DELIVERY\" | fields @timestamp, message, tenant, destination, attempt, phase, status, outcome, class, applied, duration_ms, state, due_at, reason | sort @timestamp asc | limit 500"
    trace       = "filter trace_id = \"TRACE\" | fields @timestamp, message, tenant, destination, delivery_id, attempt, outcome, state | sort @timestamp asc | limit 500"
    failures    = "filter message = \"attempted\" and outcome = \"failed\" | stats count(*) by destination, class, status | limit 100"
  }
}

resource "aws_cloudwatch_query_definition" "this" {
  for_each = { for name, query in local.queries : name => query if var.log_queries }

  name            = "${local.name}/by ${each.key}"
  log_group_names = [for name in sort(keys(local.functions)) : aws_cloudwatch_log_group.function[name].name]
  query_string    = replace(each.value, " | ", "\n| ")
}
