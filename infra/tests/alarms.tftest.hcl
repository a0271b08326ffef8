# Alarms, dashboard, metrics and runbook: each names the others, and nothing is named that is not there.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  environment  = "test"
  packages     = { ingest = "tests/package.zip", consumer = "tests/package.zip", reconciler = "tests/package.zip" }
  destinations = { acme-accounting = { owner = "accounting-integrations@acme.example" } }
}

# `metrics.json` is what the code measures: a test in Rust fails where it is stale.
run "every_metric_is_in_an_alarm_or_looked_at_only_and_every_alarm_has_its_metric" {
  assert {
    condition = toset(concat(
      flatten([
        for alarm in aws_cloudwatch_metric_alarm.this : [
          for query in alarm.metric_query : [
            for metric in query.metric : metric.metric_name if metric.namespace == "Waybill/waybill-test-events"
          ]
        ]
      ]),
      keys(local.looked_at_only),
    )) == toset([for metric in jsondecode(file("metrics.json")) : metric.name])
    error_message = "infra/metrics.json, the alarms and looked_at_only do not name the same metrics."
  }

  assert {
    condition = length(setintersection(keys(local.looked_at_only), flatten([
      for alarm in aws_cloudwatch_metric_alarm.this : [for query in alarm.metric_query : [for metric in query.metric : metric.metric_name]]
    ]))) == 0
    error_message = "What is only looked at is in no alarm."
  }

  # Where an alarm asks for a dimension, the metric has it, alone or by the sums of shared/system/src/emf.rs.
  assert {
    condition = alltrue(flatten([
      for alarm in aws_cloudwatch_metric_alarm.this : [
        for query in alarm.metric_query : [
          for metric in query.metric : [
            for told in jsondecode(file("metrics.json")) :
            contains(["", join(",", told.labels), contains(told.labels, "reason") ? "reason" : ""], join(",", keys(coalesce(metric.dimensions, {}))))
            if told.name == metric.metric_name
          ] if metric.namespace == "Waybill/waybill-test-events"
        ]
      ]
    ]))
    error_message = "An alarm asks for dimensions under which the metric does not stand."
  }

  assert {
    condition     = alltrue([for metric in jsondecode(file("metrics.json")) : strcontains(aws_cloudwatch_dashboard.this[0].dashboard_body, metric.name)])
    error_message = "A metric is not on the dashboard."
  }

  assert {
    condition     = aws_lambda_function.this["consumer"].environment[0].variables.WAYBILL_METRICS_NAMESPACE == "Waybill/waybill-test-events"
    error_message = "The functions write where the alarms look."
  }
}

# A section of the runbook says which alarms it is for: "Alarms: `one`, `another`."
run "every_alarm_has_its_page_and_every_page_its_alarms" {
  assert {
    condition = {
      for name, alarm in merge(local.own_alarms, local.composite_alarms) : name => alarm.page
      } == merge([
        for section in slice(split("\n## ", file("../docs/RUNBOOK.md")), 1, length(split("\n## ", file("../docs/RUNBOOK.md")))) : {
          for name in flatten(regexall("`([a-z-]+)`", join(" ", flatten(regexall("\nAlarms?: ([^\n]+)", section))))) :
          name => split(" (`", split("\n", section)[0])[0]
        }
    ]...)
    error_message = "Alarms and the lines \"Alarms: …\" of docs/RUNBOOK.md do not name each other."
  }

  # A test in Rust runs what stands there.
  assert {
    condition = alltrue([
      for name, alarm in merge(local.own_alarms, local.composite_alarms) : length([
        for section in split("\n## ", file("../docs/RUNBOOK.md")) : section
        if startswith(section, alarm.page) && strcontains(section, "\n${alarm.command} ")
      ]) == 1
    ])
    error_message = "An alarm's command does not stand on its page."
  }
}

run "each_text_names_the_fault_the_action_the_command_and_the_page" {
  assert {
    condition = alltrue([
      for text in concat([for alarm in aws_cloudwatch_metric_alarm.this : alarm.alarm_description], [for alarm in aws_cloudwatch_composite_alarm.this : alarm.alarm_description]) :
      length(regexall(" Begin with: waybill --backend aws [a-z-]+ .*\\. Runbook \\(docs/RUNBOOK.md\\): \"[A-Z]", text)) == 1 && length(text) <= 1024
    ])
    error_message = "Texts: what is wrong, what to do, the command, the page; at most 1,024 characters."
  }
}

run "silence_is_a_fault_of_the_reconciler_and_of_idle_consumers_alone" {
  assert {
    condition = toset([
      for alarm in aws_cloudwatch_metric_alarm.this : alarm.alarm_name if alarm.treat_missing_data == "breaching"
    ]) == toset(["waybill-test-events-reconciler-silent", "waybill-test-events-consumer-idle"])
    error_message = "Where silence is a fault, missing data is breaching, and nowhere else."
  }

  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.this : contains(["breaching", "notBreaching"], alarm.treat_missing_data)])
    error_message = "Said for each."
  }
}

# Scheduled retries wait in the queue, and are no backlog.
run "no_alarm_looks_at_the_depth_of_a_queue" {
  assert {
    condition = length(flatten([
      for alarm in aws_cloudwatch_metric_alarm.this : [
        for query in alarm.metric_query : [for metric in query.metric : metric.metric_name if metric.namespace == "AWS/SQS"]
      ]
    ])) == 0
    error_message = "Ages and slack, not depth."
  }
}

run "each_alarm_computes_one_value_of_what_it_has" {
  assert {
    condition = alltrue([
      for alarm in aws_cloudwatch_metric_alarm.this : length([for query in alarm.metric_query : query.id if query.return_data]) == 1
    ])
    error_message = "CloudWatch wants exactly one that returns data."
  }

  assert {
    condition = alltrue([
      for name, alarm in local.alarms :
      alltrue([for id in keys(alarm.metrics) : strcontains(alarm.rule, id)]) if can(alarm.rule)
    ])
    error_message = "A metric that the rule does not use."
  }

  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.this : alarm.datapoints_to_alarm <= alarm.evaluation_periods])
    error_message = "M of N."
  }

  assert {
    condition = (
      aws_cloudwatch_composite_alarm.this["consumer-stalled"].alarm_rule == "ALARM(\"waybill-test-events-oldest-due\") AND ALARM(\"waybill-test-events-consumer-idle\")" &&
      aws_cloudwatch_composite_alarm.this["overloaded"].alarm_rule == "ALARM(\"waybill-test-events-oldest-due\") AND ALARM(\"waybill-test-events-worker-saturation\")"
    )
    error_message = "One page with the right action."
  }
}

run "pages_page_parts_tell_nobody_and_the_rest_can_wait" {
  variables {
    page_topic_arn   = "arn:aws:sns:eu-west-1:123456789012:on-call"
    review_topic_arn = "arn:aws:sns:eu-west-1:123456789012:morning"
  }

  assert {
    condition = alltrue([
      for name, alarm in local.alarms : aws_cloudwatch_metric_alarm.this[name].alarm_actions == (
        alarm.urgency == "part" ? null : toset([alarm.urgency == "page" ? var.page_topic_arn : var.review_topic_arn])
      ) || (alarm.urgency == "part" && length(coalesce(aws_cloudwatch_metric_alarm.this[name].alarm_actions, [])) == 0)
    ])
    error_message = "By urgency."
  }

  assert {
    condition     = length(aws_sns_topic.alarms) == 0 && output.alarm_topics == { page = var.page_topic_arn, review = var.review_topic_arn }
    error_message = "Topics that are given are not made."
  }
}

run "topics_that_are_made_are_encrypted_and_open_to_this_instances_alarms_alone" {
  assert {
    condition = alltrue([
      for name, topic in aws_sns_topic.alarms : topic.kms_master_key_id == output.kms_key_arn
    ]) && toset(keys(aws_sns_topic.alarms)) == toset(["page", "review"])
    error_message = "Two, under the key."
  }

  assert {
    condition = alltrue([
      for policy in aws_sns_topic_policy.alarms : jsondecode(policy.policy).Statement[0].Principal == { Service = "cloudwatch.amazonaws.com" } && jsondecode(policy.policy).Statement[0].Condition.ArnLike["aws:SourceArn"] == "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:waybill-test-events-*"
    ])
    error_message = "Only this instance's alarms publish."
  }

  assert {
    condition = length([
      for grant in jsondecode(aws_kms_key.this[0].policy).Statement : grant
      if grant.Sid == "Alarms" && grant.Principal == { Service = "cloudwatch.amazonaws.com" } && grant.Action == ["kms:Decrypt", "kms:GenerateDataKey*"]
    ]) == 1
    error_message = "An alarm cannot publish to an encrypted topic without the key."
  }
}

run "objectives_are_the_thresholds" {
  variables {
    slo = { retry_to_success_s = 60, deadline_miss_percent = 2, oldest_due_s = 1200, deadline_slack_s = 30 }
  }

  assert {
    condition = (
      aws_cloudwatch_metric_alarm.this["retry-to-success"].threshold == 60000 &&
      aws_cloudwatch_metric_alarm.this["deadline-misses"].threshold == 2 &&
      aws_cloudwatch_metric_alarm.this["oldest-due"].threshold == 1200000 &&
      aws_cloudwatch_metric_alarm.this["deadline-slack"].threshold == 30000 &&
      aws_cloudwatch_metric_alarm.this["held-long"].threshold == 14400000 &&
      strcontains(aws_cloudwatch_metric_alarm.this["oldest-due"].alarm_description, "1200 s") &&
      strcontains(aws_cloudwatch_dashboard.this[0].dashboard_body, "within 60 s")
    )
    error_message = "Thresholds in ms, texts in s."
  }
}

run "an_objective_of_nothing_is_refused" {
  command = plan

  variables {
    slo = { oldest_due_s = 0 }
  }

  expect_failures = [var.slo]
}

run "the_owner_of_a_destination_is_in_its_alarms_and_on_the_dashboard" {
  assert {
    condition = alltrue([
      for name in ["destination-failing-acme-accounting", "rejections-acme-accounting"] :
      strcontains(aws_cloudwatch_metric_alarm.this[name].alarm_description, "Its owner: accounting-integrations@acme.example.") &&
      alltrue(flatten([for query in aws_cloudwatch_metric_alarm.this[name].metric_query : [for metric in query.metric : jsonencode(metric.dimensions) == jsonencode({ destination = "acme-accounting" })]]))
    ])
    error_message = "Whom to call, and only about this destination."
  }

  assert {
    condition     = strcontains(aws_cloudwatch_dashboard.this[0].dashboard_body, "acme-accounting: accounting-integrations@acme.example")
    error_message = "Owners stand on the dashboard."
  }
}

run "log_queries_by_tenant_scope_and_destination_over_every_function" {
  assert {
    condition = (
      toset(keys(aws_cloudwatch_query_definition.this)) == toset(["tenant", "scope", "destination", "delivery", "trace", "failures"]) &&
      alltrue([for query in aws_cloudwatch_query_definition.this : length(query.log_group_names) == 3])
    )
    error_message = "By whom it concerns, in all three logs."
  }
}

run "an_emulator_may_go_without" {
  variables {
    alarms      = false
    log_queries = false
  }

  assert {
    condition = length(concat(
      values(aws_cloudwatch_metric_alarm.this), values(aws_cloudwatch_composite_alarm.this), values(aws_sns_topic.alarms),
      aws_cloudwatch_dashboard.this[*].dashboard_name, values(aws_cloudwatch_query_definition.this),
    )) == 0
    error_message = "Nothing of it is made."
  }
}
