"""Alerts on the operator and its ModelVariants."""

from alerts.rules import SCOPE, VARIANTS, Alert, Group, Timing

SILENT_MINUTES = 5  # five resyncs; /livez fails after as long
GONE_MINUTES = 60  # as for the service: an operator that was uninstalled must not page for ever


def groups(timing: Timing) -> list[Group]:
    """The rules."""
    variant = "{{ $labels.namespace }}/{{ $labels.name }}"
    resync = f"assay_last_resync_timestamp_seconds{{{SCOPE}}}"
    last = f"max by (namespace, release) ({resync})"
    before = f"max by (namespace, release) (max_over_time({resync}[{timing.window(GONE_MINUTES)}]))"
    return [
        Group(
            "assay-operator",
            [
                Alert(
                    "AssayVariantStalled",
                    # Suspended is Stalled, too, and somebody's wish.
                    "max by (namespace, name, reason) "
                    f'(assay_variant_condition{{{VARIANTS}type="Stalled",status="True",reason!="Suspended"}}) == 1',
                    5,
                    "warning",
                    f"ModelVariant {variant} waits for somebody",
                    f"{variant} is stalled: {{{{ $labels.reason }}}}. What served before serves on; the model asked "
                    "for does not. `kubectl describe modelvariant` says why and what to do.",
                ),
                Alert(
                    "AssayRollbackFailed",
                    "max by (namespace, name) "
                    f'(assay_variant_condition{{{VARIANTS}type="RolledOut",reason="RollbackFailed"}}) == 1',
                    1,
                    "critical",
                    f"The rollback of ModelVariant {variant} does not come up",
                    f"A model of {variant} failed in its rollout, and the pods of the one before do not become ready "
                    "either. Nothing is scaled down; what still serves may be one model or the other.",
                ),
                Alert(
                    "AssayOperatorNotReconciling",
                    f"time() - {last} > {timing.seconds(SILENT_MINUTES)} or (time() - {before} unless {last})",
                    1,
                    "critical",
                    "The operator in {{ $labels.namespace }} does not look after ModelVariants",
                    "The last successful listing of all ModelVariants by {{ $labels.namespace }}/{{ $labels.release }} "
                    "was {{ $value | humanizeDuration }} ago: no model is checked, rolled out or rolled back.",
                ),
            ],
        )
    ]
