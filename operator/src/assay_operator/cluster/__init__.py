"""The only package that talks to the Kubernetes API: read what is there, write what a plan asks for.

Every foreign exception is translated here, once (`assay_operator.errors`). What is read becomes the dataclasses of
`assay_operator.models.observed`; nobody outside sees an API object, except the pod templates that builders copy from.

The permissions it needs, each with its reason (the chart's Role states the same):

    assay.dev/modelvariants          get, list, watch   fresh read per pass; resync and rivals; news
    assay.dev/modelvariants/status   update             written whole, with a resourceVersion precondition
    apps/deployments                 get, list, watch   the target, fresh; news
    apps/deployments                 patch              server-side apply of the four annotations
    apps/replicasets                 list               a last good pack is believed while a revision carries it
    pods                             list, watch        readiness and models; a check's state and result; news
    batch/jobs                       list, watch        its checks; how many run, where one begins; news
    batch/jobs                       get                whose a Job is, when its name turned out to be taken
    batch/jobs                       create             the check
    batch/jobs                       delete             a running check that nobody asks for any more
    events                           list               why a Job's pod was not created
    events.k8s.io/events             create             one event per transition
"""
