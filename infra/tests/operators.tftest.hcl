# Operators: bound to their tenants by the keys that every item begins with, and never writing a delivery.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  environment      = "test"
  packages         = { ingest = "tests/package.zip", consumer = "tests/package.zip", reconciler = "tests/package.zip" }
  operator_tenants = ["acme"]
}

run "one_tenant" {
  assert {
    condition = [
      for statement in jsondecode(aws_iam_policy.operator["operator-acme"].policy).Statement :
      statement.Condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"] if statement.Sid == "Read"
    ][0] == ["T#acme#*", "CONFIG"]
    error_message = "Reads what begins with the tenant, and the configuration."
  }

  assert {
    condition = [
      for statement in jsondecode(aws_iam_policy.operator["operator-acme"].policy).Statement :
      statement.Condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"] if contains(statement.Action, "dynamodb:PutItem")
    ] == [["T#acme#ORDERS", "T#acme#AUDIT"]]
    error_message = "Writes orders and audit of the tenant, and nothing else."
  }

  assert {
    condition = alltrue([
      for statement in jsondecode(aws_iam_policy.operator["operator-acme"].policy).Statement :
      !contains(statement.Action, "s3:PutObject")
    ])
    error_message = "The configuration is not one tenant's to change."
  }
}

run "every_policy" {
  assert {
    condition = alltrue(flatten([
      for policy in aws_iam_policy.operator : [
        for statement in jsondecode(policy.policy).Statement :
        length(setintersection(toset(statement.Action), toset(["dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"]))) == 0
        if statement.Effect == "Allow"
      ]
    ]))
    error_message = "Nothing is updated or deleted: orders are put, entries are added."
  }

  assert {
    condition = alltrue([
      for policy in aws_iam_policy.operator : length([
        for statement in jsondecode(policy.policy).Statement : statement
        if statement.Effect == "Deny" && contains(statement.Action, "dynamodb:Scan") && contains(statement.Action, "dynamodb:PartiQLSelect")
      ]) == 1
    ])
    error_message = "What asks for no key is denied."
  }

  assert {
    condition     = toset(keys(output.operator_policies)) == toset(["operator-acme", "operator-across-tenants"])
    error_message = "One for each tenant that was named, and one across tenants."
  }
}
