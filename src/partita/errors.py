"""Errors a caller meets, one class per code, all of them `KafkaError`; `error_for(code, message)` makes them.

Written by `tools/error_classes.py` from `partita.protocol.error_codes`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterable

from partita.error_kinds import AbortableTransactionError as AbortableTransactionError
from partita.error_kinds import FatalTransactionError as FatalTransactionError
from partita.error_kinds import KafkaError as KafkaError
from partita.error_kinds import MissingRightError as MissingRightError
from partita.protocol.error_codes import ErrorCode


def error_for(
    code: int, message: str | None = "", *, operation: str = "", names: Iterable[str] = (), user: str | None = None
) -> KafkaError:
    """The error of this code, ready to raise; the code's meaning stands in for an empty message.

    If the code says that a right is missing, `operation`, `names` and `user` say which right, and stand in for the
    message.
    """
    kind = _CLASSES[ErrorCode(code)]
    if operation and issubclass(kind, MissingRightError):
        return kind(*names, operation=operation, user=user)
    return kind(message) if message else kind()


class UnknownServerError(KafkaError, code=ErrorCode.UNKNOWN_SERVER_ERROR):
    """The broker met an error it has no code for."""


class OffsetOutOfRangeError(KafkaError, code=ErrorCode.OFFSET_OUT_OF_RANGE):
    """The offset lies outside what the partition holds."""


class CorruptMessageError(KafkaError, code=ErrorCode.CORRUPT_MESSAGE):
    """A checksum, size or format of the records is wrong."""


class UnknownTopicOrPartitionError(KafkaError, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
    """This broker knows no such topic or partition."""


class InvalidFetchSizeError(KafkaError, code=ErrorCode.INVALID_FETCH_SIZE):
    """The fetch size asked for is not valid."""


class LeaderNotAvailableError(KafkaError, code=ErrorCode.LEADER_NOT_AVAILABLE):
    """No leader is elected for the partition yet."""


class NotLeaderOrFollowerError(KafkaError, code=ErrorCode.NOT_LEADER_OR_FOLLOWER):
    """This broker does not lead the partition."""


class RequestTimedOutError(KafkaError, code=ErrorCode.REQUEST_TIMED_OUT):
    """The request ran out of time."""


class BrokerNotAvailableError(KafkaError, code=ErrorCode.BROKER_NOT_AVAILABLE):
    """The broker is not there."""


class ReplicaNotAvailableError(KafkaError, code=ErrorCode.REPLICA_NOT_AVAILABLE):
    """The replica is not there."""


class MessageTooLargeError(KafkaError, code=ErrorCode.MESSAGE_TOO_LARGE):
    """A record or batch is larger than the topic allows."""


class StaleControllerEpochError(KafkaError, code=ErrorCode.STALE_CONTROLLER_EPOCH):
    """The request comes from a controller that has been replaced."""


class OffsetMetadataTooLargeError(KafkaError, code=ErrorCode.OFFSET_METADATA_TOO_LARGE):
    """The metadata string of a committed offset is too long."""


class NetworkError(KafkaError, code=ErrorCode.NETWORK_EXCEPTION):
    """The connection broke before the answer came."""


class CoordinatorLoadInProgressError(KafkaError, code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
    """The coordinator is still loading its state."""


class CoordinatorNotAvailableError(KafkaError, code=ErrorCode.COORDINATOR_NOT_AVAILABLE):
    """No coordinator is there for this key yet."""


class NotCoordinatorError(KafkaError, code=ErrorCode.NOT_COORDINATOR):
    """Another broker coordinates this key."""


class InvalidTopicError(KafkaError, code=ErrorCode.INVALID_TOPIC_EXCEPTION):
    """The topic name is not valid, or the topic may not be used this way."""


class RecordListTooLargeError(KafkaError, code=ErrorCode.RECORD_LIST_TOO_LARGE):
    """The batches together exceed the segment size."""


class NotEnoughReplicasError(KafkaError, code=ErrorCode.NOT_ENOUGH_REPLICAS):
    """Fewer replicas are in sync than the topic asks for."""


class NotEnoughReplicasAfterAppendError(KafkaError, code=ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
    """The records were written, to fewer replicas than the topic asks for."""


class InvalidRequiredAcksError(KafkaError, code=ErrorCode.INVALID_REQUIRED_ACKS):
    """Acks is none of -1, 0, 1."""


class IllegalGenerationError(KafkaError, code=ErrorCode.ILLEGAL_GENERATION):
    """The generation is not the group's current one."""


class InconsistentGroupProtocolError(KafkaError, code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
    """The member shares no protocol type or protocol name with the group."""


class InvalidGroupIdError(KafkaError, code=ErrorCode.INVALID_GROUP_ID):
    """The group id is not valid."""


class UnknownMemberIdError(KafkaError, code=ErrorCode.UNKNOWN_MEMBER_ID):
    """The group has no such member."""


class InvalidSessionTimeoutError(KafkaError, code=ErrorCode.INVALID_SESSION_TIMEOUT):
    """The session timeout lies outside the bounds of this broker."""


class RebalanceInProgressError(KafkaError, code=ErrorCode.REBALANCE_IN_PROGRESS):
    """The group rebalances; the member must rejoin."""


class InvalidCommitOffsetSizeError(KafkaError, code=ErrorCode.INVALID_COMMIT_OFFSET_SIZE):
    """The committed offset and its metadata are too large to store."""


class TopicAuthorizationFailedError(MissingRightError, code=ErrorCode.TOPIC_AUTHORIZATION_FAILED):
    """Not authorized for the topic."""

    resource, option = "topic", "--topic"


class GroupAuthorizationFailedError(MissingRightError, code=ErrorCode.GROUP_AUTHORIZATION_FAILED):
    """Not authorized for the group."""

    resource, option = "group", "--group"


class ClusterAuthorizationFailedError(MissingRightError, code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
    """Not authorized for the cluster."""

    resource, option = "the cluster", "--cluster"


class InvalidTimestampError(KafkaError, code=ErrorCode.INVALID_TIMESTAMP):
    """A record's timestamp lies outside what the topic accepts."""


class UnsupportedSaslMechanismError(KafkaError, code=ErrorCode.UNSUPPORTED_SASL_MECHANISM):
    """The broker does not offer this SASL mechanism."""


class IllegalSaslStateError(KafkaError, code=ErrorCode.ILLEGAL_SASL_STATE):
    """The request does not fit the SASL handshake at this point."""


class UnsupportedVersionError(KafkaError, code=ErrorCode.UNSUPPORTED_VERSION):
    """This version of the API is not supported."""


class TopicAlreadyExistsError(KafkaError, code=ErrorCode.TOPIC_ALREADY_EXISTS):
    """The topic exists already."""


class InvalidPartitionsError(KafkaError, code=ErrorCode.INVALID_PARTITIONS):
    """The partition count is not valid."""


class InvalidReplicationFactorError(KafkaError, code=ErrorCode.INVALID_REPLICATION_FACTOR):
    """The replication factor is not valid."""


class InvalidReplicaAssignmentError(KafkaError, code=ErrorCode.INVALID_REPLICA_ASSIGNMENT):
    """The replica assignment is not valid."""


class InvalidConfigError(KafkaError, code=ErrorCode.INVALID_CONFIG):
    """A config value is not valid."""


class NotControllerError(KafkaError, code=ErrorCode.NOT_CONTROLLER):
    """This broker is not the controller."""


class InvalidRequestError(KafkaError, code=ErrorCode.INVALID_REQUEST):
    """The request contradicts itself or breaks a rule of its API."""


class UnsupportedForMessageFormatError(KafkaError, code=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT):
    """The record format on the broker cannot do this."""


class PolicyViolationError(KafkaError, code=ErrorCode.POLICY_VIOLATION):
    """A policy of the broker forbids this."""


class OutOfOrderSequenceNumberError(KafkaError, code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
    """The batch's sequence number does not follow the last one."""


class DuplicateSequenceNumberError(KafkaError, code=ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
    """A batch with this sequence number was written before."""


class InvalidProducerEpochError(KafkaError, code=ErrorCode.INVALID_PRODUCER_EPOCH):
    """A newer epoch of this producer exists."""


class InvalidTxnStateError(KafkaError, code=ErrorCode.INVALID_TXN_STATE):
    """The transaction's state does not allow this."""


class InvalidProducerIdMappingError(FatalTransactionError, code=ErrorCode.INVALID_PRODUCER_ID_MAPPING):
    """The producer id does not belong to this transactional id."""


class InvalidTransactionTimeoutError(KafkaError, code=ErrorCode.INVALID_TRANSACTION_TIMEOUT):
    """The transaction timeout exceeds what the broker allows."""


class ConcurrentTransactionsError(KafkaError, code=ErrorCode.CONCURRENT_TRANSACTIONS):
    """Another step of this transaction is still under way."""


class TransactionCoordinatorFencedError(KafkaError, code=ErrorCode.TRANSACTION_COORDINATOR_FENCED):
    """The transaction coordinator has been replaced."""


class TransactionalIdAuthorizationFailedError(MissingRightError, code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
    """Not authorized for the transactional id."""

    resource, option = "transactional id", "--transactional-id"


class SecurityDisabledError(KafkaError, code=ErrorCode.SECURITY_DISABLED):
    """Security is switched off on this broker."""


class OperationNotAttemptedError(KafkaError, code=ErrorCode.OPERATION_NOT_ATTEMPTED):
    """Nothing was attempted; an earlier part of the request failed."""


class KafkaStorageError(KafkaError, code=ErrorCode.KAFKA_STORAGE_ERROR):
    """The broker cannot read or write its storage."""


class LogDirNotFoundError(KafkaError, code=ErrorCode.LOG_DIR_NOT_FOUND):
    """The log directory is not among the broker's."""


class SaslAuthenticationFailedError(KafkaError, code=ErrorCode.SASL_AUTHENTICATION_FAILED):
    """The SASL credentials were refused."""


class AuthenticationError(SaslAuthenticationFailedError):
    """A broker refuses this client, or cannot be trusted by it. Trying again is no help; the text names the cure."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else super().__str__()


class TlsError(AuthenticationError):
    """No trusted TLS connection to a broker can be made with these options."""


class UnknownProducerIdError(KafkaError, code=ErrorCode.UNKNOWN_PRODUCER_ID):
    """The broker holds no state for this producer id."""


class ReassignmentInProgressError(KafkaError, code=ErrorCode.REASSIGNMENT_IN_PROGRESS):
    """A reassignment of this partition is under way."""


class DelegationTokenAuthDisabledError(KafkaError, code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED):
    """Delegation tokens are switched off."""


class DelegationTokenNotFoundError(KafkaError, code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND):
    """No such delegation token."""


class DelegationTokenOwnerMismatchError(KafkaError, code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH):
    """The delegation token belongs to someone else."""


class DelegationTokenRequestNotAllowedError(KafkaError, code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
    """Delegation tokens are not allowed on this connection."""


class DelegationTokenAuthorizationFailedError(KafkaError, code=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED):
    """Not authorized for the delegation token."""


class DelegationTokenExpiredError(KafkaError, code=ErrorCode.DELEGATION_TOKEN_EXPIRED):
    """The delegation token has expired."""


class InvalidPrincipalTypeError(KafkaError, code=ErrorCode.INVALID_PRINCIPAL_TYPE):
    """The principal type is not supported."""


class NonEmptyGroupError(KafkaError, code=ErrorCode.NON_EMPTY_GROUP):
    """The group still has members."""


class GroupIdNotFoundError(KafkaError, code=ErrorCode.GROUP_ID_NOT_FOUND):
    """The group does not exist."""


class FetchSessionIdNotFoundError(KafkaError, code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND):
    """The broker holds no such fetch session."""


class InvalidFetchSessionEpochError(KafkaError, code=ErrorCode.INVALID_FETCH_SESSION_EPOCH):
    """The fetch session's epoch does not follow the last one."""


class ListenerNotFoundError(KafkaError, code=ErrorCode.LISTENER_NOT_FOUND):
    """The leader has no listener of the name this client uses."""


class TopicDeletionDisabledError(KafkaError, code=ErrorCode.TOPIC_DELETION_DISABLED):
    """Topic deletion is switched off."""


class FencedLeaderEpochError(KafkaError, code=ErrorCode.FENCED_LEADER_EPOCH):
    """The leader epoch of the request is older than the broker's."""


class UnknownLeaderEpochError(KafkaError, code=ErrorCode.UNKNOWN_LEADER_EPOCH):
    """The leader epoch of the request is newer than the broker's."""


class UnsupportedCompressionTypeError(KafkaError, code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
    """The compression is not supported in this version."""


class StaleBrokerEpochError(KafkaError, code=ErrorCode.STALE_BROKER_EPOCH):
    """The broker epoch of the request is out of date."""


class OffsetNotAvailableError(KafkaError, code=ErrorCode.OFFSET_NOT_AVAILABLE):
    """The leader cannot say its high watermark yet."""


class MemberIdRequiredError(KafkaError, code=ErrorCode.MEMBER_ID_REQUIRED):
    """The coordinator gave a member id; join again with it."""


class PreferredLeaderNotAvailableError(KafkaError, code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE):
    """The preferred leader is not there."""


class GroupMaxSizeReachedError(KafkaError, code=ErrorCode.GROUP_MAX_SIZE_REACHED):
    """The group is full."""


class FencedInstanceIdError(KafkaError, code=ErrorCode.FENCED_INSTANCE_ID):
    """Another member holds this group instance id."""


class EligibleLeadersNotAvailableError(KafkaError, code=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE):
    """No replica may be elected leader."""


class ElectionNotNeededError(KafkaError, code=ErrorCode.ELECTION_NOT_NEEDED):
    """The partition has the leader asked for already."""


class NoReassignmentInProgressError(KafkaError, code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS):
    """No reassignment is under way."""


class GroupSubscribedToTopicError(KafkaError, code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC):
    """The group still consumes the topic."""


class InvalidRecordError(KafkaError, code=ErrorCode.INVALID_RECORD):
    """A record failed the broker's checks."""


class UnstableOffsetCommitError(KafkaError, code=ErrorCode.UNSTABLE_OFFSET_COMMIT):
    """An open transaction holds offsets of this group; ask again."""


class ThrottlingQuotaExceededError(KafkaError, code=ErrorCode.THROTTLING_QUOTA_EXCEEDED):
    """The quota is used up; wait before the next request."""


class ProducerFencedError(FatalTransactionError, code=ErrorCode.PRODUCER_FENCED):
    """A newer producer uses this transactional id."""


class ResourceNotFoundError(KafkaError, code=ErrorCode.RESOURCE_NOT_FOUND):
    """No such resource."""


class DuplicateResourceError(KafkaError, code=ErrorCode.DUPLICATE_RESOURCE):
    """The request names a resource twice."""


class UnacceptableCredentialError(KafkaError, code=ErrorCode.UNACCEPTABLE_CREDENTIAL):
    """The credential does not meet the broker's demands."""


class InconsistentVoterSetError(KafkaError, code=ErrorCode.INCONSISTENT_VOTER_SET):
    """Sender and receiver see different voter sets."""


class InvalidUpdateVersionError(KafkaError, code=ErrorCode.INVALID_UPDATE_VERSION):
    """The feature version is not valid."""


class FeatureUpdateFailedError(KafkaError, code=ErrorCode.FEATURE_UPDATE_FAILED):
    """The feature update failed."""


class PrincipalDeserializationFailureError(KafkaError, code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE):
    """The principal sent along cannot be read."""


class SnapshotNotFoundError(KafkaError, code=ErrorCode.SNAPSHOT_NOT_FOUND):
    """No such snapshot."""


class PositionOutOfRangeError(KafkaError, code=ErrorCode.POSITION_OUT_OF_RANGE):
    """The position lies outside the snapshot."""


class UnknownTopicIdError(KafkaError, code=ErrorCode.UNKNOWN_TOPIC_ID):
    """This broker knows no such topic id."""


class DuplicateBrokerRegistrationError(KafkaError, code=ErrorCode.DUPLICATE_BROKER_REGISTRATION):
    """Another live broker has registered this id."""


class BrokerIdNotRegisteredError(KafkaError, code=ErrorCode.BROKER_ID_NOT_REGISTERED):
    """The broker id is not registered."""


class InconsistentTopicIdError(KafkaError, code=ErrorCode.INCONSISTENT_TOPIC_ID):
    """The log belongs to another topic id."""


class InconsistentClusterIdError(KafkaError, code=ErrorCode.INCONSISTENT_CLUSTER_ID):
    """The request names another cluster."""


class TransactionalIdNotFoundError(KafkaError, code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
    """No such transactional id."""


class FetchSessionTopicIdError(KafkaError, code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR):
    """The fetch session mixes topic names and topic ids."""


class IneligibleReplicaError(KafkaError, code=ErrorCode.INELIGIBLE_REPLICA):
    """The replica may not join the in-sync set."""


class NewLeaderElectedError(KafkaError, code=ErrorCode.NEW_LEADER_ELECTED):
    """A new leader was elected meanwhile."""


class OffsetMovedToTieredStorageError(KafkaError, code=ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE):
    """The offset has moved to tiered storage."""


class FencedMemberEpochError(KafkaError, code=ErrorCode.FENCED_MEMBER_EPOCH):
    """The member epoch is not the current one; rejoin after giving up all partitions."""


class UnreleasedInstanceIdError(KafkaError, code=ErrorCode.UNRELEASED_INSTANCE_ID):
    """Another member still holds this group instance id; ask again once it has left."""


class UnsupportedAssignorError(KafkaError, code=ErrorCode.UNSUPPORTED_ASSIGNOR):
    """The broker lacks the assignor asked for."""


class StaleMemberEpochError(KafkaError, code=ErrorCode.STALE_MEMBER_EPOCH):
    """The member epoch is out of date; ask again after the next heartbeat."""


class MismatchedEndpointTypeError(KafkaError, code=ErrorCode.MISMATCHED_ENDPOINT_TYPE):
    """This endpoint serves another kind of request."""


class UnsupportedEndpointTypeError(KafkaError, code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE):
    """The endpoint type is not supported."""


class UnknownControllerIdError(KafkaError, code=ErrorCode.UNKNOWN_CONTROLLER_ID):
    """No such controller id."""


class UnknownSubscriptionIdError(KafkaError, code=ErrorCode.UNKNOWN_SUBSCRIPTION_ID):
    """The telemetry subscription is out of date."""


class TelemetryTooLargeError(KafkaError, code=ErrorCode.TELEMETRY_TOO_LARGE):
    """The telemetry exceeds the broker's limit."""


class InvalidRegistrationError(KafkaError, code=ErrorCode.INVALID_REGISTRATION):
    """The broker registration is not valid."""


class TransactionAbortableError(AbortableTransactionError, code=ErrorCode.TRANSACTION_ABORTABLE):
    """The transaction can only be aborted."""


class InvalidRecordStateError(KafkaError, code=ErrorCode.INVALID_RECORD_STATE):
    """The record's delivery state does not allow this."""


class ShareSessionNotFoundError(KafkaError, code=ErrorCode.SHARE_SESSION_NOT_FOUND):
    """The broker holds no such share session."""


class InvalidShareSessionEpochError(KafkaError, code=ErrorCode.INVALID_SHARE_SESSION_EPOCH):
    """The share session's epoch does not follow the last one."""


class FencedStateEpochError(KafkaError, code=ErrorCode.FENCED_STATE_EPOCH):
    """The share state's epoch is out of date."""


class InvalidVoterKeyError(KafkaError, code=ErrorCode.INVALID_VOTER_KEY):
    """The voter's key is not valid."""


class DuplicateVoterError(KafkaError, code=ErrorCode.DUPLICATE_VOTER):
    """The voter exists already."""


class VoterNotFoundError(KafkaError, code=ErrorCode.VOTER_NOT_FOUND):
    """No such voter."""


class InvalidRegularExpressionError(KafkaError, code=ErrorCode.INVALID_REGULAR_EXPRESSION):
    """The regular expression is not valid."""


class RebootstrapRequiredError(KafkaError, code=ErrorCode.REBOOTSTRAP_REQUIRED):
    """The client's metadata is too old; start again from the bootstrap servers."""


class StreamsInvalidTopologyError(KafkaError, code=ErrorCode.STREAMS_INVALID_TOPOLOGY):
    """The streams topology is not valid."""


class StreamsInvalidTopologyEpochError(KafkaError, code=ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH):
    """The streams topology's epoch is not valid."""


class StreamsTopologyFencedError(KafkaError, code=ErrorCode.STREAMS_TOPOLOGY_FENCED):
    """The streams topology's epoch is out of date."""


class ShareSessionLimitReachedError(KafkaError, code=ErrorCode.SHARE_SESSION_LIMIT_REACHED):
    """The broker holds as many share sessions as it may."""


class GroupDeletionFailedError(KafkaError, code=ErrorCode.GROUP_DELETION_FAILED):
    """The group could not be deleted."""


class StreamsTopologyDescriptionUpdateFailedError(KafkaError, code=ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED):  # fmt: skip # noqa: E501
    """The streams topology's description was not stored."""


class ControllerIdNotRegisteredError(KafkaError, code=ErrorCode.CONTROLLER_ID_NOT_REGISTERED):
    """No controller with this id is registered."""


_PARENTS = (KafkaError, FatalTransactionError, AbortableTransactionError, MissingRightError)
_CLASSES = {kind.code: kind for parent in _PARENTS for kind in parent.__subclasses__() if "code" in vars(kind)}
