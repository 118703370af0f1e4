import json
from pathlib import Path

from partita.protocol.api_table import APIS, Api
from support.every_case import every_case

RELEASE = json.loads((Path(__file__).parents[2] / "vectors" / "schema.json").read_text())
KAFKAS = {api["api"]: api for api in RELEASE["apis"]}


@every_case("api", APIS.values(), lambda api: api.name)
def test_versions_and_headers_are_those_of_the_release(api: Api) -> None:
    kafkas = KAFKAS[api.key]
    assert (api.name, api.min_version, api.max_version) == (kafkas["name"], kafkas["min"], kafkas["max"])
    versions = range(api.min_version, api.max_version + 1)
    assert [2 if v >= api.flexible_from else 1 for v in versions] == kafkas["request"]["header_versions"]
    assert [int(v >= api.tagged_header_from) for v in versions] == kafkas["response"]["header_versions"]


@every_case("api", APIS.values(), lambda api: api.name)
def test_the_classes_are_found_by_name(api: Api) -> None:
    assert (api.request.__name__, api.response.__name__) == (f"{api.name}Request", f"{api.name}Response")
    for cls in (api.request, api.response):
        assert (api.key, api.min_version, api.max_version) == (cls.API_KEY, cls.MIN_VERSION, cls.MAX_VERSION)


def test_the_apis_of_a_consumer_group_and_its_topics_are_all_there() -> None:
    wanted = (
        "ApiVersions Metadata CreateTopics DeleteTopics CreatePartitions Produce Fetch ListOffsets "
        "OffsetForLeaderEpoch InitProducerId FindCoordinator JoinGroup SyncGroup Heartbeat LeaveGroup OffsetCommit "
        "OffsetFetch OffsetDelete DescribeGroups ListGroups DeleteGroups DescribeConfigs DescribeCluster"
    )
    assert set(wanted.split()) <= {api.name for api in APIS.values()}
