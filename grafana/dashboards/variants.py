"""The dashboard of whoever swaps models: verdicts and their figures, rollouts, conditions, the operator's health."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.panels import BAD, GOOD, WARN, Board, Query, graph, listing, number, states

WHERE = 'namespace=~"$namespace",name=~"$variant"'
RATE = "$__rate_interval"
CONTAINMENT = (0.98,)  # the CRD's default of minTop3ContainmentPermille
COST = (1.0, 1.1)  # a check's default limits: of INT8 that meets FP32, and of the others
RESYNC_S = (120, 300)  # two resyncs missed; /livez fails and the alert fires
CONDITION_STATES = (("0", "False", "#8f8f8f"), ("1", "Unknown", WARN), ("2", "True", GOOD))
ROLLOUT_STATES = (
    ("0", "RolloutInProgress", "blue"),
    ("1", "Soaking", "purple"),
    ("2", "RolloutComplete", GOOD),
    ("3", "RolledBack", WARN),
    ("4", "RollbackFailed", BAD),
    ("5", "another reason", "#8f8f8f"),
)


def condition(kind: str, extra: str = "") -> str:
    """A selector of one type of condition."""
    return f'assay_variant_condition{{{WHERE},type="{kind}"{"," if extra else ""}{extra}}}'


def operator(metric: str, by: str = "") -> str:
    """The sum of the rates of an operator's counter. Its namespace may be another one than its variants'."""
    return f"sum{f' by ({by})' if by else ''} (rate({metric}[{RATE}]))"


def occurred(metric: str, by: str) -> str:
    """The same by a label, of those values that have occurred: of the others there is a series, too, at 0."""
    return f"{operator(metric, by)} and sum by ({by}) ({metric}) > 0"


def _states() -> str:
    """Each condition's status as a number: True 2, Unknown 1, False 0."""
    one = f"assay_variant_condition{{{WHERE}"
    return (
        f'max by (namespace, name, type) (2 * {one},status="True"}} or {one},status="Unknown"}} '
        f'or 0 * {one},status="False"}})'
    )


def _rollouts() -> str:
    """The reason of RolledOut as a number."""
    known = [text for _, text, _ in ROLLOUT_STATES[:-1]]
    told = " or ".join(f"{place} * " + condition("RolledOut", f'reason="{text}"') for place, text in enumerate(known))
    others = condition("RolledOut", f'reason!~"{"|".join(known)}"')
    return f"max by (namespace, name) ({told} or {len(known)} * {others})"


def build() -> Dashboard:
    """The dashboard."""
    board = Board("assay-variants", "Assay / Variants", "ModelVariants: what was asked for, proved, and rolled out.")
    board.variable(
        "namespace",
        "Namespace",
        "Namespaces with ModelVariants.",
        "label_values(assay_variant_condition, namespace)",
    )
    board.variable(
        "variant",
        "ModelVariant",
        "ModelVariants there.",
        'label_values(assay_variant_condition{namespace=~"$namespace"}, name)',
    )
    board.annotation(
        "Refused", f'sum by (reason) (increase(assay_check_verdicts_total{{verdict="Fail"}}[{RATE}])) > 0', "red"
    )
    board.annotation("Rolled back", f'increase(assay_rollouts_total{{result="RolledBack"}}[{RATE}]) > 0', "orange")
    _now(board)
    _checks(board)
    _rolling(board)
    _health(board)
    return board.build()


def _number(kind: str, extra: str) -> str:
    """How many ModelVariants have a condition; without an operator to tell, that is unknown, and not 0."""
    return f"count({condition(kind, extra)}) or 0 * count(assay_variant_condition{{{WHERE}}})"


def _now(board: Board) -> None:
    board.row(
        "Now",
        number("Ready", "ModelVariants whose model serves and is proved.", "short",
               Query(_number("Ready", _TRUE), "ready"), span=3, decimals=0),
        number("Stalled", "ModelVariants that wait for somebody: refused, rolled back, or in trouble.", "short",
               Query(_number("Stalled", _TRUE), "stalled"), span=3, thresholds=(1,), decimals=0),
        number("Unproved", "Workloads that serve a model nobody has proved in their present environment.", "short",
               Query(_number("Available", _UNPROVED), "unproved"), span=3, thresholds=(1,), decimals=0),
        number("Check bypassed", "Models that serve by annotation, without a check.", "short",
               Query(_number("CheckPassed", _BYPASSED), "bypassed"), span=3, thresholds=(1,), decimals=0),
        listing("ModelVariants", "The condition Ready of each: `kubectl describe modelvariant` has the sentence that "
                "goes with the reason.", "namespace", "name", "status", "reason", query=Query(condition("Ready"))),
        states("Conditions", "Each condition's status over time. Green is True: good for all but Reconciling and "
               "Stalled.", Query(_states(), "{{namespace}}/{{name}} {{type}}"), CONDITION_STATES),
    )  # fmt: skip


_TRUE = 'status="True"'
_UNPROVED = 'status="False",reason="Unverified"'
_BYPASSED = 'status="False",reason="CheckBypassed"'


def _figure(metric: str) -> str:
    return f"max by (namespace, name) ({metric}{{{WHERE}}})"


def _checks(board: Board) -> None:
    seconds = f"rate(assay_check_duration_seconds_bucket[{RATE}])"
    board.row(
        "Checks",
        graph("Verdicts", "Checks that ended, by verdict and reason, of all ModelVariants of the operator.", "short",
              Query(f"sum by (verdict, reason) (increase(assay_check_verdicts_total[{RATE}])) > 0",
                    "{{verdict}} {{reason}}"), stacked=True, bars=True),
        graph("Top-3 containment", "How often the candidate's top three hold what the yardstick sees first: as "
              "counted, its lower bound, and the least lower bound that the spec takes.", "percentunit",
              Query(_figure("assay_variant_containment_ratio"), "{{name}} counted"),
              Query(_figure("assay_variant_containment_lower_ratio"), "{{name}} lower bound"),
              Query(_figure("assay_variant_containment_wanted_ratio"), "{{name}} wanted"),
              thresholds=CONTAINMENT, falling=True, top=1),
        graph("Cost ratio", "CPU time per image of the candidate over the yardstick's. Above 1 it costs more; a check "
              "refuses INT8 there, and others above 1.1, unless the spec says otherwise.", "percentunit",
              Query(_figure("assay_variant_cost_ratio"), "{{name}}"), thresholds=COST),
        graph("Duration of checks", "From the creation of a check's Job to its end.", "s",
              *(Query(f"histogram_quantile({q}, sum by (le) ({seconds}))", f"p{q * 100:.0f}") for q in (0.5, 0.95))),
    )  # fmt: skip


def _rolling(board: Board) -> None:
    board.row(
        "Rollouts",
        states("State of rollouts", "Why the condition RolledOut is as it is.",
               Query(_rollouts(), "{{namespace}}/{{name}}"), ROLLOUT_STATES, span=12),
        graph("Rollouts that ended", "By how: RolloutComplete, RolledBack, RollbackFailed.", "short",
              Query(f"sum by (result) (increase(assay_rollouts_total[{RATE}])) > 0", "{{result}}"),
              span=6, stacked=True, bars=True),
        graph("Ready pods by model", "What the pods of these namespaces serve: in a rollout the colours change places.",
              "short", Query('sum by (name, precision) (assay_model_info{namespace=~"$namespace"} * ignoring (name, '
                             'precision, digest) group_left () assay_ready{namespace=~"$namespace"})',
                             "{{name}} {{precision}}"), span=6, stacked=True),
    )  # fmt: skip


def _health(board: Board) -> None:
    bucket = operator("assay_reconcile_duration_seconds_bucket", "le")
    board.row(
        "Operator",
        graph("Since the last resync", "All ModelVariants are listed every minute. Above five minutes the operator "
              "calls itself dead, and is restarted.", "s",
              Query("time() - max by (namespace, release) (assay_last_resync_timestamp_seconds > 0)",
                    "{{namespace}}/{{release}}"), thresholds=RESYNC_S),
        graph("Passes", "Looks at one ModelVariant, per second.", "ops",
              Query(operator("assay_reconcile_duration_seconds_count"), "passes")),
        graph("Duration of a pass", "A pass is a handful of requests to the API server.", "s",
              *(Query(f"histogram_quantile({q}, {bucket})", f"p{q * 100:.0f}") for q in (0.5, 0.99))),
        graph("Passes that failed", "By kind of error. They are repeated, at growing intervals.", "ops",
              Query(occurred("assay_reconcile_errors_total", "kind"), "{{kind}}"), stacked=True),
        graph("Requests to the API server", "By status; 0 means no answer. 409 and 404 are part of its work.", "reqps",
              Query(occurred("assay_api_requests_total", "code"), "{{code}}"), stacked=True),
        graph("Memory", "Resident memory of the operator.", "bytes",
              Query("sum by (pod) (process_resident_memory_bytes) and sum by (pod) "
                    "(assay_last_resync_timestamp_seconds)", "{{pod}}")),
    )  # fmt: skip
