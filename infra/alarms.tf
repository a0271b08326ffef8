# What wakes somebody, and what waits for the morning. Each alarm says what is wrong, what to do, with
# which command, and on which page of the runbook; `tests/alarms.tftest.hcl` holds all of that together.
#
# No alarm counts messages: what waits for its retry, is parked or held is in no queue's depth that would
# mean anything. Ages and slack tell.

locals {
  metrics_namespace = "Waybill/${local.name}"

  # Fields: `says` what is wrong, `act` what to do, `command` where to begin, `page` of the runbook.
  # `urgency`: page, review, or part of a composite alarm below, which then tells.
  # `metrics` by the names of infra/metrics.json, over everything (or AWS's own, with their namespace);
  # `rule` what is computed of them, where it is more than the one metric.
  # `missing`: breaching where silence is the fault; notBreaching where silence only means that nothing
  # happened, or where it is the reconciler's, whose own alarm tells it.
  own_alarms = {
    reconciler-silent = {
      says    = "The reconciler came to the end of no round for five minutes: nothing that lost its message is found again, and no other gauge is true."
      act     = "Look at its function's errors and at its schedule; mend the configuration or the permission that its log names."
      command = "waybill config history"
      page    = "The reconciler is silent"
      urgency = "page"
      metrics = { rounds = { name = "Reconciled", stat = "Sum" } }
      breach  = ["LessThanThreshold", 1], over = [300, 1, 1], missing = "breaching"
    }

    # Each further look at the same delivery comes twice as late: half an hour in view.
    oldest-due = {
      says    = "A delivery that may go has not gone for longer than ${var.slo.oldest_due_s} s."
      act     = "Find which one, and why it makes no progress; scheduled retries and what is held are not in this."
      command = "waybill deliveries list --state pending --since 24h"
      page    = "The oldest due age grows"
      urgency = "review"
      metrics = { age = { name = "OldestDueAge", stat = "Maximum" } }
      breach  = ["GreaterThanThreshold", var.slo.oldest_due_s * 1000], over = [300, 6, 1], missing = "notBreaching"
    }

    # Silence is the fault: with something due and no attempt at all, nobody works.
    consumer-idle = {
      says    = "No attempt was made for ten minutes. Harmless where nothing is due."
      act     = "See the alarm consumer-stalled."
      command = "waybill deliveries list --state pending --since 24h"
      page    = "The oldest due age grows"
      urgency = "part"
      metrics = { attempts = { name = "AttemptDuration", stat = "SampleCount" } }
      breach  = ["LessThanThreshold", 1], over = [300, 2, 2], missing = "breaching"
    }

    worker-saturation = {
      says    = "Batches come in full: more waits than the workers take. Harmless while nothing is late."
      act     = "See the alarm overloaded."
      command = "waybill destinations list"
      page    = "Workers are saturated"
      urgency = "part"
      metrics = { room = { name = "WorkerSaturation", stat = "Average" } }
      breach  = ["GreaterThanOrEqualToThreshold", 90], over = [300, 6, 3], missing = "notBreaching"
    }

    deadline-misses = {
      says    = "More than ${var.slo.deadline_miss_percent} % of the deliveries that ended within an hour missed their deadline; they are never sent."
      act     = "Save what still has time: find what is in its way, add concurrency, or hold what matters least."
      command = "waybill deliveries list --state expired --since 24h"
      page    = "Deadlines are missed, or slack is small"
      urgency = "page"
      metrics = {
        missed    = { name = "Expired", stat = "Sum" }
        delivered = { name = "Delivered", stat = "Sum" }
        dead      = { name = "DeadLettered", stat = "Sum" }
      }
      rule   = "100 * FILL(missed, 0) / (FILL(missed, 0) + FILL(delivered, 0) + FILL(dead, 0))"
      breach = ["GreaterThanThreshold", var.slo.deadline_miss_percent], over = [3600, 1, 1], missing = "notBreaching"
    }

    deadline-slack = {
      says    = "An open delivery has less than ${var.slo.deadline_slack_s} s left to its deadline."
      act     = "It will expire unless it goes: find what is in its way (a hold, a failing destination, no room), and give it room."
      command = "waybill deliveries list --state retryable"
      page    = "Deadlines are missed, or slack is small"
      urgency = "page"
      metrics = { slack = { name = "LeastDeadlineSlack", stat = "Minimum" } }
      breach  = ["LessThanOrEqualToThreshold", var.slo.deadline_slack_s * 1000], over = [60, 5, 1], missing = "notBreaching"
    }

    retry-to-success = {
      says    = "Of the deliveries that needed a retry, 5 in 100 took longer than ${var.slo.retry_to_success_s} s to their success."
      act     = "See which destinations fail first attempts, and whether their policy's delays suit them."
      command = "waybill deliveries list --state retryable"
      page    = "Retries take too long to succeed"
      urgency = "review"
      metrics = { took = { name = "RetryToSuccess", stat = "p95" } }
      breach  = ["GreaterThanThreshold", var.slo.retry_to_success_s * 1000], over = [3600, 1, 1], missing = "notBreaching"
    }

    rejections = {
      says    = "Ten or more deliveries within five minutes were refused for good: a secret, an address or a schema is wrong, and more of the same will follow."
      act     = "Hold that destination or class of payloads before more are lost to it, then mend what the reason names."
      command = "waybill dead-letters summary"
      page    = "Dead letters arrive"
      urgency = "page"
      metrics = { refused = { name = "PermanentlyRejected", stat = "Sum" } }
      breach  = ["GreaterThanOrEqualToThreshold", 10], over = [300, 1, 1], missing = "notBreaching"
    }

    dead-letters = {
      says    = "Automation gave deliveries up; they wait for a person."
      act     = "Review the failure class, mend what it names, and redrive or close them."
      command = "waybill dead-letters summary"
      page    = "Dead letters arrive"
      urgency = "review"
      metrics = { dead = { name = "DeadLettered", stat = "Sum" } }
      breach  = ["GreaterThanOrEqualToThreshold", 1], over = [300, 1, 1], missing = "notBreaching"
    }

    # Told in every fifth minute.
    old-dead-letters = {
      says    = "A dead letter has waited for a person for longer than ${var.slo.dead_letter_review_s} s."
      act     = "Redrive it, resolve it or close it: whoever reviews dead letters has passed it over."
      command = "waybill dead-letters summary"
      page    = "Dead letters wait too long"
      urgency = "review"
      metrics = { age = { name = "OldestDeadLetterAge", stat = "Maximum" } }
      breach  = ["GreaterThanThreshold", var.slo.dead_letter_review_s * 1000], over = [900, 1, 1], missing = "notBreaching"
    }

    # Automation retries; it is a person's at night only where deadlines come near, which is told above.
    destinations-failing = {
      says    = "More than half of all attempts fail and are retried."
      act     = "Call the destination's owner; if it will be long, pause the destination, so that no attempts are spent."
      command = "waybill destinations list"
      page    = "A destination fails or hangs"
      urgency = "review"
      metrics = {
        retried  = { name = "RetryScheduled", stat = "Sum" }
        attempts = { name = "AttemptDuration", stat = "SampleCount" }
      }
      rule   = "IF(attempts >= 20, 100 * FILL(retried, 0) / attempts, 0)"
      breach = ["GreaterThanThreshold", 50], over = [300, 3, 3], missing = "notBreaching"
    }

    rate-limited = {
      says    = "More than a fifth of all attempts are answered with 429."
      act     = "Set the destination's rate to what its owner allows: attempts beyond it are wasted."
      command = "waybill destinations list"
      page    = "A destination fails or hangs"
      urgency = "review"
      metrics = {
        limited  = { name = "RateLimited", stat = "Sum" }
        attempts = { name = "AttemptDuration", stat = "SampleCount" }
      }
      rule   = "IF(attempts >= 20, 100 * FILL(limited, 0) / attempts, 0)"
      breach = ["GreaterThanThreshold", 20], over = [300, 3, 3], missing = "notBreaching"
    }

    attempts-slow = {
      says    = "Of all attempts, 5 in 100 take longer than ${var.slo.attempt_duration_s} s: a recipient hangs, and takes workers for as long."
      act     = "Bound the destination's concurrency, and call its owner."
      command = "waybill destinations list"
      page    = "A destination fails or hangs"
      urgency = "review"
      metrics = { took = { name = "AttemptDuration", stat = "p95" } }
      breach  = ["GreaterThanThreshold", var.slo.attempt_duration_s * 1000], over = [300, 3, 3], missing = "notBreaching"
    }

    suspended = {
      says    = "Deliveries are held because automation suspended their destination; their deadlines go on."
      act     = "Call the destination's owner: only a person can mend what it refuses."
      command = "waybill hold list"
      page    = "A destination was suspended"
      urgency = "page"
      metrics = { suspended = { name = "Suspended", stat = "Sum" } }
      breach  = ["GreaterThanOrEqualToThreshold", 1], over = [300, 1, 1], missing = "notBreaching"
    }

    # The gauge is of what a round reads of what is held (docs/decisions/0014): at most the longest held, perhaps less.
    held-long = {
      says    = "Something has been held for longer than ${var.slo.held_s} s: a pause, a quarantine or a stopped run was forgotten, or a budget is too small."
      act     = "Lift the hold, or say in the audit why it stays."
      command = "waybill hold list --all"
      page    = "Held deliveries grow"
      urgency = "review"
      metrics = { age = { name = "OldestHeldAge", stat = "Maximum" } }
      breach  = ["GreaterThanThreshold", var.slo.held_s * 1000], over = [900, 1, 1], missing = "notBreaching"
    }

    duplicates = {
      says    = "For an hour, a quarter as many messages led to no request as deliveries were made."
      act     = "Nothing was sent twice. See whether the visibility timeout is too short, or a producer publishes again and again."
      command = "waybill deliveries list --since 24h"
      page    = "Duplicates are suppressed in numbers"
      urgency = "review"
      metrics = {
        duplicates = { name = "DuplicateSuppressed", stat = "Sum" }
        delivered  = { name = "Delivered", stat = "Sum" }
      }
      rule   = "IF(FILL(delivered, 0) >= 100, 100 * FILL(duplicates, 0) / FILL(delivered, 0), 0)"
      breach = ["GreaterThanThreshold", 25], over = [3600, 1, 1], missing = "notBreaching"
    }

    redrive-failing = {
      says    = "More than half of what a redrive released is given up again."
      act     = "Stop the run, and correct what its dead letters name before it goes on."
      command = "waybill redrive status"
      page    = "A redrive fails again"
      urgency = "review"
      metrics = { success = { name = "RedriveSuccess", stat = "Average" } }
      breach  = ["LessThanThreshold", 50], over = [900, 1, 1], missing = "notBreaching"
    }

    schedule-late = {
      says    = "A schedule's delivery took longer than ${var.slo.schedule_to_result_s} s from its firing to its success."
      act     = "See whether the window was published late or its recipient answered late."
      command = "waybill deliveries list --since 24h"
      page    = "A scheduled job is late"
      urgency = "review"
      metrics = { took = { name = "ScheduleToResult", stat = "Maximum" } }
      breach  = ["GreaterThanThreshold", var.slo.schedule_to_result_s * 1000], over = [3600, 1, 1], missing = "notBreaching"
    }

    ingest-errors = {
      says    = "Ingest fails: producers are answered with 5xx, and nothing of theirs is recorded."
      act     = "Look at ingest's log for which store refuses; producers repeat the same event, and nothing is doubled."
      command = "waybill config history"
      page    = "A function fails"
      urgency = "page"
      metrics = { errors = { namespace = "AWS/Lambda", name = "Errors", stat = "Sum", dimensions = { FunctionName = "${local.name}-ingest" } } }
      breach  = ["GreaterThanOrEqualToThreshold", 3], over = [300, 2, 2], missing = "notBreaching"
    }

    consumer-errors = {
      says    = "The consumer fails as a whole: batches come back, and after enough of that SQS moves their messages."
      act     = "Look at its log; roll back what was deployed or put in force last. Nothing is lost: the ledger rescues what SQS moved."
      command = "waybill config history"
      page    = "A function fails"
      urgency = "page"
      metrics = { errors = { namespace = "AWS/Lambda", name = "Errors", stat = "Sum", dimensions = { FunctionName = "${local.name}-consumer" } } }
      breach  = ["GreaterThanOrEqualToThreshold", 3], over = [300, 2, 2], missing = "notBreaching"
    }

    consumer-throttled = {
      says    = "Lambda refuses to start the consumer: the account's concurrency is used up."
      act     = "Raise the account's limit, or lower what else uses it; maximum_concurrency reserves nothing."
      command = "waybill deliveries list --state pending --since 24h"
      page    = "A function fails"
      urgency = "review"
      metrics = { throttles = { namespace = "AWS/Lambda", name = "Throttles", stat = "Sum", dimensions = { FunctionName = "${local.name}-consumer" } } }
      breach  = ["GreaterThanOrEqualToThreshold", 10], over = [300, 3, 3], missing = "notBreaching"
    }
  }

  # The same for a destination that metrics name, with its owner.
  destination_alarms = merge([
    for destination, told in var.destinations : {
      "destination-failing-${destination}" = merge(local.own_alarms.destinations-failing, {
        says = "More than half of the attempts at ${destination} fail and are retried. Its owner: ${told.owner}."
        metrics = {
          for id, metric in local.own_alarms.destinations-failing.metrics : id => merge(metric, { dimensions = { destination = destination } })
        }
      })
      "rejections-${destination}" = merge(local.own_alarms.rejections, {
        says = "Ten or more deliveries within five minutes were refused for good by ${destination}. Its owner: ${told.owner}."
        metrics = {
          for id, metric in local.own_alarms.rejections.metrics : id => merge(metric, { dimensions = { destination = destination } })
        }
      })
    }
  ]...)

  alarms = { for name, alarm in merge(local.own_alarms, local.destination_alarms) : name => alarm if var.alarms }

  # One message with the right action, where parts alone would say too much or nothing.
  composites = {
    consumer-stalled = {
      says    = "Deliveries are due and nobody makes attempts."
      act     = "Start consumption again: the consumer's errors, its event source mapping, the revision in force."
      command = "waybill deliveries list --state pending --since 24h"
      page    = "The oldest due age grows"
      urgency = "page"
      of      = ["oldest-due", "consumer-idle"]
    }
    overloaded = {
      says    = "Deliveries are late and the workers are full."
      act     = "Add concurrency (maximum_concurrency, the destination's concurrency), or hold the class of events that matters least."
      command = "waybill destinations list"
      page    = "Workers are saturated"
      urgency = "page"
      of      = ["oldest-due", "worker-saturation"]
    }
  }

  composite_alarms = { for name, alarm in local.composites : name => alarm if var.alarms }

  alarm_texts = {
    for name, alarm in merge(local.alarms, local.composite_alarms) :
    name => "${alarm.says} ${alarm.act} Begin with: ${replace(alarm.command, "/^waybill /", "waybill --backend aws ")}. Runbook (${var.runbook}): \"${alarm.page}\"."
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = local.alarms

  alarm_name          = "${local.name}-${each.key}"
  alarm_description   = local.alarm_texts[each.key]
  comparison_operator = each.value.breach[0]
  threshold           = each.value.breach[1]
  evaluation_periods  = each.value.over[1]
  datapoints_to_alarm = each.value.over[2]
  treat_missing_data  = each.value.missing
  alarm_actions       = each.value.urgency == "part" ? [] : local.topics[each.value.urgency]
  ok_actions          = each.value.urgency == "page" ? local.topics.page : []
  tags                = local.tags

  dynamic "metric_query" {
    for_each = each.value.metrics

    content {
      id          = metric_query.key
      return_data = !can(each.value.rule)

      metric {
        namespace   = try(metric_query.value.namespace, local.metrics_namespace)
        metric_name = metric_query.value.name
        stat        = metric_query.value.stat
        period      = each.value.over[0]
        dimensions  = try(metric_query.value.dimensions, {})
      }
    }
  }

  dynamic "metric_query" {
    for_each = try([each.value.rule], [])

    content {
      id          = "rule"
      label       = each.key
      expression  = metric_query.value
      return_data = true
    }
  }
}

resource "aws_cloudwatch_composite_alarm" "this" {
  for_each = local.composite_alarms

  alarm_name        = "${local.name}-${each.key}"
  alarm_description = local.alarm_texts[each.key]
  alarm_rule        = join(" AND ", [for part in each.value.of : "ALARM(\"${aws_cloudwatch_metric_alarm.this[part].alarm_name}\")"])
  alarm_actions     = local.topics[each.value.urgency]
  ok_actions        = local.topics[each.value.urgency]
  tags              = local.tags
}
