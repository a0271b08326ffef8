"""A second consumer beside the deployed one, of the next version, on the same queue and the same ledger."""

import io
import zipfile
from contextlib import contextmanager

from places import BINARIES
from stage import feed

NAME = "waybill-local-events-consumer-next"


def package():
    entry = zipfile.ZipInfo("bootstrap", (1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o100755 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as package:
        package.writestr(entry, (BINARIES / "waybill-consumer-next").read_bytes(), compresslevel=1)
    return zipped.getvalue()


class NextVersion:
    """It is deployed as the deployed consumer is, and fed from the same queue while `feeding`."""

    def __init__(self, stage):
        self.stage, self.lambdas = stage, stage.lambdas
        like = self.lambdas.get_function_configuration(FunctionName=stage.aws.outputs["functions"]["consumer"])
        wanted = ("Runtime", "Role", "Handler", "Timeout", "MemorySize", "Architectures")
        settings = {key: like[key] for key in wanted if key in like}
        environment = {"Variables": like["Environment"]["Variables"]}
        self.lambdas.create_function(
            FunctionName=NAME, Code={"ZipFile": package()}, Environment=environment, **settings,
        )
        mapping = self.lambdas.get_event_source_mapping(UUID=stage.aws.outputs["event_source_mapping"])
        self.mapping = self.lambdas.create_event_source_mapping(
            FunctionName=NAME, EventSourceArn=mapping["EventSourceArn"], BatchSize=mapping["BatchSize"],
            FunctionResponseTypes=mapping["FunctionResponseTypes"], Enabled=False,
            ScalingConfig={"MaximumConcurrency": 4},
        )["UUID"]

    def feeding(self, enabled):
        feed(self.lambdas, self.mapping, enabled)

    def remove(self):
        self.lambdas.delete_event_source_mapping(UUID=self.mapping)
        self.lambdas.delete_function(FunctionName=NAME)


@contextmanager
def next_version(stage):
    version = NextVersion(stage)
    try:
        yield version
    finally:
        version.remove()
        stage.consuming(True)
