# Written by tools/error_classes.py; do not edit.
from __future__ import annotations

from collections.abc import Iterable

from partita.error_kinds import AbortableTransactionError as AbortableTransactionError
from partita.error_kinds import FatalTransactionError as FatalTransactionError
from partita.error_kinds import KafkaError as KafkaError
from partita.error_kinds import MissingRightError as MissingRightError

def error_for(
    code: int, message: str | None = "", *, operation: str = "", names: Iterable[str] = (), user: str | None = None
) -> KafkaError: ...

class UnknownServerError(KafkaError):
    """The broker met an error it has no code for."""

class OffsetOutOfRangeError(KafkaError):
    """The offset lies outside what the partition holds."""

class CorruptMessageError(KafkaError):
    """A checksum, size or format of the records is wrong."""

class UnknownTopicOrPartitionError(KafkaError):
    """This broker knows no such topic or partition."""

class InvalidFetchSizeError(KafkaError):
    """The fetch size asked for is not valid."""

class LeaderNotAvailableError(KafkaError):
    """No leader is elected for the partition yet."""

class NotLeaderOrFollowerError(KafkaError):
    """This broker does not lead the partition."""

class RequestTimedOutError(KafkaError):
    """The request ran out of time."""

class BrokerNotAvailableError(KafkaError):
    """The broker is not there."""

class ReplicaNotAvailableError(KafkaError):
    """The replica is not there."""

class MessageTooLargeError(KafkaError):
    """A record or batch is larger than the topic allows."""

class StaleControllerEpochError(KafkaError):
    """The request comes from a controller that has been replaced."""

class OffsetMetadataTooLargeError(KafkaError):
    """The metadata string of a committed offset is too long."""

class NetworkError(KafkaError):
    """The connection broke before the answer came."""

class CoordinatorLoadInProgressError(KafkaError):
    """The coordinator is still loading its state."""

class CoordinatorNotAvailableError(KafkaError):
    """No coordinator is there for this key yet."""

class NotCoordinatorError(KafkaError):
    """Another broker coordinates this key."""

class InvalidTopicError(KafkaError):
    """The topic name is not valid, or the topic may not be used this way."""

class RecordListTooLargeError(KafkaError):
    """The batches together exceed the segment size."""

class NotEnoughReplicasError(KafkaError):
    """Fewer replicas are in sync than the topic asks for."""

class NotEnoughReplicasAfterAppendError(KafkaError):
    """The records were written, to fewer replicas than the topic asks for."""

class InvalidRequiredAcksError(KafkaError):
    """Acks is none of -1, 0, 1."""

class IllegalGenerationError(KafkaError):
    """The generation is not the group's current one."""

class InconsistentGroupProtocolError(KafkaError):
    """The member shares no protocol type or protocol name with the group."""

class InvalidGroupIdError(KafkaError):
    """The group id is not valid."""

class UnknownMemberIdError(KafkaError):
    """The group has no such member."""

class InvalidSessionTimeoutError(KafkaError):
    """The session timeout lies outside the bounds of this broker."""

class RebalanceInProgressError(KafkaError):
    """The group rebalances; the member must rejoin."""

class InvalidCommitOffsetSizeError(KafkaError):
    """The committed offset and its metadata are too large to store."""

class TopicAuthorizationFailedError(MissingRightError):
    """Not authorized for the topic."""

class GroupAuthorizationFailedError(MissingRightError):
    """Not authorized for the group."""

class ClusterAuthorizationFailedError(MissingRightError):
    """Not authorized for the cluster."""

class InvalidTimestampError(KafkaError):
    """A record's timestamp lies outside what the topic accepts."""

class UnsupportedSaslMechanismError(KafkaError):
    """The broker does not offer this SASL mechanism."""

class IllegalSaslStateError(KafkaError):
    """The request does not fit the SASL handshake at this point."""

class UnsupportedVersionError(KafkaError):
    """This version of the API is not supported."""

class TopicAlreadyExistsError(KafkaError):
    """The topic exists already."""

class InvalidPartitionsError(KafkaError):
    """The partition count is not valid."""

class InvalidReplicationFactorError(KafkaError):
    """The replication factor is not valid."""

class InvalidReplicaAssignmentError(KafkaError):
    """The replica assignment is not valid."""

class InvalidConfigError(KafkaError):
    """A config value is not valid."""

class NotControllerError(KafkaError):
    """This broker is not the controller."""

class InvalidRequestError(KafkaError):
    """The request contradicts itself or breaks a rule of its API."""

class UnsupportedForMessageFormatError(KafkaError):
    """The record format on the broker cannot do this."""

class PolicyViolationError(KafkaError):
    """A policy of the broker forbids this."""

class OutOfOrderSequenceNumberError(KafkaError):
    """The batch's sequence number does not follow the last one."""

class DuplicateSequenceNumberError(KafkaError):
    """A batch with this sequence number was written before."""

class InvalidProducerEpochError(KafkaError):
    """A newer epoch of this producer exists."""

class InvalidTxnStateError(KafkaError):
    """The transaction's state does not allow this."""

class InvalidProducerIdMappingError(FatalTransactionError):
    """The producer id does not belong to this transactional id."""

class InvalidTransactionTimeoutError(KafkaError):
    """The transaction timeout exceeds what the broker allows."""

class ConcurrentTransactionsError(KafkaError):
    """Another step of this transaction is still under way."""

class TransactionCoordinatorFencedError(KafkaError):
    """The transaction coordinator has been replaced."""

class TransactionalIdAuthorizationFailedError(MissingRightError):
    """Not authorized for the transactional id."""

class SecurityDisabledError(KafkaError):
    """Security is switched off on this broker."""

class OperationNotAttemptedError(KafkaError):
    """Nothing was attempted; an earlier part of the request failed."""

class KafkaStorageError(KafkaError):
    """The broker cannot read or write its storage."""

class LogDirNotFoundError(KafkaError):
    """The log directory is not among the broker's."""

class SaslAuthenticationFailedError(KafkaError):
    """The SASL credentials were refused."""

class UnknownProducerIdError(KafkaError):
    """The broker holds no state for this producer id."""

class ReassignmentInProgressError(KafkaError):
    """A reassignment of this partition is under way."""

class DelegationTokenAuthDisabledError(KafkaError):
    """Delegation tokens are switched off."""

class DelegationTokenNotFoundError(KafkaError):
    """No such delegation token."""

class DelegationTokenOwnerMismatchError(KafkaError):
    """The delegation token belongs to someone else."""

class DelegationTokenRequestNotAllowedError(KafkaError):
    """Delegation tokens are not allowed on this connection."""

class DelegationTokenAuthorizationFailedError(KafkaError):
    """Not authorized for the delegation token."""

class DelegationTokenExpiredError(KafkaError):
    """The delegation token has expired."""

class InvalidPrincipalTypeError(KafkaError):
    """The principal type is not supported."""

class NonEmptyGroupError(KafkaError):
    """The group still has members."""

class GroupIdNotFoundError(KafkaError):
    """The group does not exist."""

class FetchSessionIdNotFoundError(KafkaError):
    """The broker holds no such fetch session."""

class InvalidFetchSessionEpochError(KafkaError):
    """The fetch session's epoch does not follow the last one."""

class ListenerNotFoundError(KafkaError):
    """The leader has no listener of the name this client uses."""

class TopicDeletionDisabledError(KafkaError):
    """Topic deletion is switched off."""

class FencedLeaderEpochError(KafkaError):
    """The leader epoch of the request is older than the broker's."""

class UnknownLeaderEpochError(KafkaError):
    """The leader epoch of the request is newer than the broker's."""

class UnsupportedCompressionTypeError(KafkaError):
    """The compression is not supported in this version."""

class StaleBrokerEpochError(KafkaError):
    """The broker epoch of the request is out of date."""

class OffsetNotAvailableError(KafkaError):
    """The leader cannot say its high watermark yet."""

class MemberIdRequiredError(KafkaError):
    """The coordinator gave a member id; join again with it."""

class PreferredLeaderNotAvailableError(KafkaError):
    """The preferred leader is not there."""

class GroupMaxSizeReachedError(KafkaError):
    """The group is full."""

class FencedInstanceIdError(KafkaError):
    """Another member holds this group instance id."""

class EligibleLeadersNotAvailableError(KafkaError):
    """No replica may be elected leader."""

class ElectionNotNeededError(KafkaError):
    """The partition has the leader asked for already."""

class NoReassignmentInProgressError(KafkaError):
    """No reassignment is under way."""

class GroupSubscribedToTopicError(KafkaError):
    """The group still consumes the topic."""

class InvalidRecordError(KafkaError):
    """A record failed the broker's checks."""

class UnstableOffsetCommitError(KafkaError):
    """An open transaction holds offsets of this group; ask again."""

class ThrottlingQuotaExceededError(KafkaError):
    """The quota is used up; wait before the next request."""

class ProducerFencedError(FatalTransactionError):
    """A newer producer uses this transactional id."""

class ResourceNotFoundError(KafkaError):
    """No such resource."""

class DuplicateResourceError(KafkaError):
    """The request names a resource twice."""

class UnacceptableCredentialError(KafkaError):
    """The credential does not meet the broker's demands."""

class InconsistentVoterSetError(KafkaError):
    """Sender and receiver see different voter sets."""

class InvalidUpdateVersionError(KafkaError):
    """The feature version is not valid."""

class FeatureUpdateFailedError(KafkaError):
    """The feature update failed."""

class PrincipalDeserializationFailureError(KafkaError):
    """The principal sent along cannot be read."""

class SnapshotNotFoundError(KafkaError):
    """No such snapshot."""

class PositionOutOfRangeError(KafkaError):
    """The position lies outside the snapshot."""

class UnknownTopicIdError(KafkaError):
    """This broker knows no such topic id."""

class DuplicateBrokerRegistrationError(KafkaError):
    """Another live broker has registered this id."""

class BrokerIdNotRegisteredError(KafkaError):
    """The broker id is not registered."""

class InconsistentTopicIdError(KafkaError):
    """The log belongs to another topic id."""

class InconsistentClusterIdError(KafkaError):
    """The request names another cluster."""

class TransactionalIdNotFoundError(KafkaError):
    """No such transactional id."""

class FetchSessionTopicIdError(KafkaError):
    """The fetch session mixes topic names and topic ids."""

class IneligibleReplicaError(KafkaError):
    """The replica may not join the in-sync set."""

class NewLeaderElectedError(KafkaError):
    """A new leader was elected meanwhile."""

class OffsetMovedToTieredStorageError(KafkaError):
    """The offset has moved to tiered storage."""

class FencedMemberEpochError(KafkaError):
    """The member epoch is not the current one; rejoin after giving up all partitions."""

class UnreleasedInstanceIdError(KafkaError):
    """Another member still holds this group instance id; ask again once it has left."""

class UnsupportedAssignorError(KafkaError):
    """The broker lacks the assignor asked for."""

class StaleMemberEpochError(KafkaError):
    """The member epoch is out of date; ask again after the next heartbeat."""

class MismatchedEndpointTypeError(KafkaError):
    """This endpoint serves another kind of request."""

class UnsupportedEndpointTypeError(KafkaError):
    """The endpoint type is not supported."""

class UnknownControllerIdError(KafkaError):
    """No such controller id."""

class UnknownSubscriptionIdError(KafkaError):
    """The telemetry subscription is out of date."""

class TelemetryTooLargeError(KafkaError):
    """The telemetry exceeds the broker's limit."""

class InvalidRegistrationError(KafkaError):
    """The broker registration is not valid."""

class TransactionAbortableError(AbortableTransactionError):
    """The transaction can only be aborted."""

class InvalidRecordStateError(KafkaError):
    """The record's delivery state does not allow this."""

class ShareSessionNotFoundError(KafkaError):
    """The broker holds no such share session."""

class InvalidShareSessionEpochError(KafkaError):
    """The share session's epoch does not follow the last one."""

class FencedStateEpochError(KafkaError):
    """The share state's epoch is out of date."""

class InvalidVoterKeyError(KafkaError):
    """The voter's key is not valid."""

class DuplicateVoterError(KafkaError):
    """The voter exists already."""

class VoterNotFoundError(KafkaError):
    """No such voter."""

class InvalidRegularExpressionError(KafkaError):
    """The regular expression is not valid."""

class RebootstrapRequiredError(KafkaError):
    """The client's metadata is too old; start again from the bootstrap servers."""

class StreamsInvalidTopologyError(KafkaError):
    """The streams topology is not valid."""

class StreamsInvalidTopologyEpochError(KafkaError):
    """The streams topology's epoch is not valid."""

class StreamsTopologyFencedError(KafkaError):
    """The streams topology's epoch is out of date."""

class ShareSessionLimitReachedError(KafkaError):
    """The broker holds as many share sessions as it may."""

class GroupDeletionFailedError(KafkaError):
    """The group could not be deleted."""

class StreamsTopologyDescriptionUpdateFailedError(KafkaError):
    """The streams topology's description was not stored."""

class ControllerIdNotRegisteredError(KafkaError):
    """No controller with this id is registered."""

class AuthenticationError(SaslAuthenticationFailedError):
    """A broker refuses this client, or cannot be trusted by it. Trying again is no help; the text names the cure."""

class TlsError(AuthenticationError):
    """No trusted TLS connection to a broker can be made with these options."""
