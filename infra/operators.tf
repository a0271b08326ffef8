# What operators may do: read, and order. They never write a delivery: what they order, the functions
# carry out. Attach these to the roles of your people; nothing here makes a person or a role.
#
# Every item of a tenant's lies under a key that begins with the tenant, and so do the keys of the indexes
# by which dead letters and days are listed. IAM compares them (dynamodb:LeadingKeys).

locals {
  operator_policies = merge(
    { for tenant in var.operator_tenants : "operator-${tenant}" => {
      description = "Operate the deliveries of tenant ${tenant}, and of nobody else"
      read        = ["T#${tenant}#*", "CONFIG"]
      order       = ["T#${tenant}#ORDERS", "T#${tenant}#AUDIT"]
      apply       = false
    } },
    { "operator-across-tenants" = {
      description = "Operate the deliveries of all tenants, and change the configuration"
      read        = ["*"]
      order       = ["T#*#ORDERS", "T#*#AUDIT", "CONFIG"]
      apply       = true
    } },
  )

  operator_statements = {
    for name, policy in local.operator_policies : name => [for statement in [
      {
        Sid      = "Read"
        Effect   = "Allow"
        Action   = ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"]
        Resource = [aws_dynamodb_table.ledger.arn, "${aws_dynamodb_table.ledger.arn}/index/*"]
        Condition = {
          "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = policy.read }
        }
      },
      {
        Sid      = "Order"
        Effect   = "Allow"
        Action   = ["dynamodb:PutItem"]
        Resource = [aws_dynamodb_table.ledger.arn]
        Condition = {
          "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = policy.order }
        }
      },
      {
        Sid       = "ReadConfiguration"
        Effect    = "Allow"
        Action    = ["s3:GetObject"]
        Resource  = [local.configuration_arn]
        Condition = {}
      },
      {
        Sid       = "ApplyConfiguration"
        Effect    = "Allow"
        Action    = ["s3:PutObject"]
        Resource  = policy.apply ? [local.configuration_arn] : []
        Condition = {}
      },
      {
        Sid      = "UseKey"
        Effect   = "Allow"
        Action   = concat(["kms:Decrypt"], policy.apply ? ["kms:GenerateDataKey"] : [])
        Resource = [local.kms_key_arn]
        Condition = {
          StringEquals = {
            "kms:ViaService" = [for service in ["dynamodb", "s3"] : "${service}.${local.region}.amazonaws.com"]
          }
        }
      },
      {
        # Neither asks for a leading key, so neither can be bound to one.
        Sid       = "NeverScan"
        Effect    = "Deny"
        Action    = ["dynamodb:Scan", "dynamodb:PartiQLSelect", "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate", "dynamodb:PartiQLDelete"]
        Resource  = [aws_dynamodb_table.ledger.arn, "${aws_dynamodb_table.ledger.arn}/index/*"]
        Condition = {}
      },
    ] : { for key, value in statement : key => value if key != "Condition" || length(value) > 0 } if length(statement.Resource) > 0]
  }
}

resource "aws_iam_policy" "operator" {
  for_each = local.operator_policies

  name        = "${local.name}-${each.key}"
  description = each.value.description
  tags        = local.tags
  policy      = jsonencode({ Version = "2012-10-17", Statement = local.operator_statements[each.key] })
}
