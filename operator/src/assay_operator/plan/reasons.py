"""The reasons that conditions, events and rejections carry."""

from typing import Final

# The check
BASE_MODEL: Final = "BaseModel"
CHECK_PASSED: Final = "CheckPassed"
CHECK_QUEUED: Final = "CheckQueued"
CHECK_RUNNING: Final = "CheckRunning"
CHECK_BYPASSED: Final = "CheckBypassed"
CHECK_INCONCLUSIVE: Final = "CheckInconclusive"
CHECK_TIMED_OUT: Final = "CheckTimedOut"
CHECK_IMAGE_PULL_FAILED: Final = "CheckImagePullFailed"
CHECK_UNSCHEDULABLE: Final = "CheckUnschedulable"
CHECK_CRASHED: Final = "CheckCrashed"
CHECK_RESULT_INVALID: Final = "CheckResultInvalid"
PACK_UNAVAILABLE: Final = "PackUnavailable"
YARDSTICK_NOT_APPROVED: Final = "YardstickNotApproved"
JOB_NAME_CONFLICT: Final = "JobNameConflict"

REFUSALS: Final = frozenset({"LabelsDiffer", "AccuracyBelowThreshold", "AccuracyNotProven", "CostAboveThreshold"})
"""Reasons of a Fail: the measurement went well and the pack is not good enough."""

# The rollout
ROLLOUT_IN_PROGRESS: Final = "RolloutInProgress"
SOAKING: Final = "Soaking"
ROLLOUT_COMPLETE: Final = "RolloutComplete"
PROGRESS_DEADLINE_EXCEEDED: Final = "ProgressDeadlineExceeded"
REPLICA_FAILURE: Final = "ReplicaFailure"
SOAK_FAILED: Final = "SoakFailed"
ROLLED_BACK: Final = "RolledBack"
ROLLBACK_FAILED: Final = "RollbackFailed"
DRIFT_CORRECTED: Final = "DriftCorrected"

# The whole
SERVING: Final = "Serving"
SUSPENDED: Final = "Suspended"
UNVERIFIED: Final = "Unverified"
MINIMUM_REPLICAS_AVAILABLE: Final = "MinimumReplicasAvailable"
NO_READY_PODS: Final = "NoReadyPods"
INVALID_SPEC: Final = "InvalidSpec"
TARGET_NOT_FOUND: Final = "TargetNotFound"
TARGET_CONFLICT: Final = "TargetConflict"
INSUFFICIENT_PERMISSIONS: Final = "InsufficientPermissions"
API_REFUSED: Final = "ApiRefused"
