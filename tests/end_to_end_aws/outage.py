"""A way to DynamoDB that breaks: what a function asks for meanwhile is answered with an error of the service,
one in two after the store has done it, so that nobody hears of it."""

import threading

from way import Way, refusal


class Outage(Way):
    """Between one deployed function and its table, until the end of the `with`."""

    def __init__(self, stage, function):
        self.stage, self.function = stage, stage.aws.outputs["functions"][function]
        self.is_broken, self.refused = False, 0
        self.lock = threading.Lock()
        super().__init__(stage.aws.endpoint)

    def answer(self, operation, body, ask):
        refuses, does = self.next()
        answer = ask() if does else None
        return refusal(500, "com.amazonaws.dynamodb.v20120810#InternalServerError") if refuses else answer

    def next(self):
        """Whether the next request is answered with an error, and whether the store does it."""
        with self.lock:
            self.refused += self.is_broken
            return self.is_broken, not self.is_broken or self.refused % 2 == 0

    def begin(self):
        self.is_broken = True

    def end(self):
        self.is_broken = False

    def __enter__(self):
        self.before = self.stage.lambdas.get_function_configuration(FunctionName=self.function)["Environment"]
        variables = {**self.before["Variables"], "AWS_ENDPOINT_URL_DYNAMODB": self.url}
        self.stage.lambdas.update_function_configuration(
            FunctionName=self.function, Environment={"Variables": variables},
        )
        return self

    def __exit__(self, *_):
        self.stage.lambdas.update_function_configuration(FunctionName=self.function, Environment=self.before)
        super().__exit__()
