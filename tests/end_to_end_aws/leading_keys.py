"""What IAM does with `dynamodb:LeadingKeys`, and the emulator does not: a way to DynamoDB that compares
the partition key of whatever is asked for with the patterns of a policy, and refuses as AWS would.

Everything else of a policy the emulator enforces itself.
"""

import json
from fnmatch import fnmatchcase

from way import Way, refusal


def asked(operation, request):
    """The actions and partition keys that a request asks for, as IAM counts them."""
    if operation == "TransactWriteItems":
        return [("PutItem", item["Put"]["Item"]["pk"]["S"]) for item in request["TransactItems"]]
    if operation == "PutItem":
        return [(operation, request["Item"]["pk"]["S"])]
    if operation == "GetItem":
        return [(operation, request["Key"]["pk"]["S"])]
    if operation == "BatchGetItem":
        tables = request["RequestItems"].values()
        return [(operation, key["pk"]["S"]) for table in tables for key in table["Keys"]]
    if operation == "Query":
        return [(operation, request["ExpressionAttributeValues"][":p"]["S"])]
    return [(operation, None)]


class LeadingKeys(Way):
    """In front of `endpoint`, with the statements of one policy."""

    def __init__(self, endpoint, statements):
        self.denied, self.allowed = [], []
        for statement in statements:
            condition = statement.get("Condition", {}).get("ForAllValues:StringLike", {})
            keys = condition.get("dynamodb:LeadingKeys")
            if statement["Effect"] == "Allow" and keys:
                keys = [keys] if isinstance(keys, str) else keys
                actions = [action.removeprefix("dynamodb:") for action in statement["Action"]]
                self.allowed += [(action, key) for action in actions for key in keys]
        super().__init__(endpoint)

    def is_allowed(self, action, key):
        return key is not None and any(a == action and fnmatchcase(key, pattern) for a, pattern in self.allowed)

    def answer(self, operation, body, ask):
        beyond = [asked_for for asked_for in asked(operation, json.loads(body)) if not self.is_allowed(*asked_for)]
        if not beyond:
            return ask()
        self.denied += beyond
        said = f"User: arn:aws:iam::000000000000:user/x is not authorized to perform: dynamodb:{beyond[0][0]}"
        return refusal(400, "com.amazon.coral.service#AccessDeniedException", Message=said)
