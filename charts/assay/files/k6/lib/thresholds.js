// What k6 must keep apart while it runs, and what the numbers mean in the end: pass, fail or invalid.
import { LATE_ALWAYS, LATE_MS, LATE_SHARE } from './openloop.js';
import { FAULTS, STAGES, STATUSES } from './client.js';

/** Slices of a run that the charts show one by one. */
export const SLOTS = 30;
/** Edges of the latency histogram in ms: eight to a factor of ten, from 1 ms to 10 s. */
export const BINS = Array.from({ length: 33 }, (_, index) => 10 ** (index / 8));

/** The bin that a latency falls into: below edge 0, between two edges, or above the last one. */
export function binOf(milliseconds) {
  return BINS.findIndex((edge) => milliseconds < edge) < 0
    ? BINS.length
    : BINS.findIndex((edge) => milliseconds < edge);
}

/**
 * Thresholds that cannot fail: k6 keeps the values of a tagged part of a metric only where a threshold names it, and
 * hands them to the summary.
 */
export function keptApart(phases) {
  const always = {};
  const keep = (metric, tag, values, rule) => {
    for (const value of values) {
      always[`${metric}{${tag}:${value}}`] = [rule];
    }
  };
  const range = (length) => Array.from({ length }, (_, index) => index);
  keep('latency_right', 'slot', range(SLOTS), 'max>=0');
  keep('latency_right', 'phase', phases.map((phase) => phase.name), 'max>=0');
  keep('latency_kind', 'kind', ['ordinary', 'large', 'hostile'], 'max>=0');
  keep('latency_bin', 'bin', range(BINS.length + 1), 'count>=0');
  keep('sent', 'slot', range(SLOTS), 'count>=0');
  keep('not_right', 'slot', range(SLOTS), 'count>=0');
  keep('answers', 'status', STATUSES, 'count>=0');
  keep('wrong_answers', 'fault', FAULTS, 'count>=0');
  keep('stage_time', 'stage', STAGES, 'max>=0');
  return always;
}

const percent = (share) => `${(share * 100).toFixed(2)} %`;

/** Why a run did not measure what it was to measure; empty for a valid one. */
export function invalidities(run) {
  const reasons = [];
  if (run.started < run.planned) {
    reasons.push(`${run.planned - run.started} of ${run.planned} requests were never sent: the run was cut short`);
  }
  const lateCount = Math.round(run.lateShare * run.started);
  if (lateCount > Math.max(LATE_ALWAYS, LATE_SHARE * run.started)) {
    const why =
      run.unattended > lateCount / 2
        ? `all ${run.senders} senders waited for answers: raise SENDERS`
        : 'the load generator had no CPU when they were due: give it more, or another node';
    reasons.push(
      `${lateCount} requests (${percent(run.lateShare)}) were sent more than ${LATE_MS} ms late, and ` +
        `${percent(LATE_SHARE)} may be${run.started * LATE_SHARE < LATE_ALWAYS ? ', or one' : ''}; ${why}`,
    );
  }
  return reasons;
}

/** What the service did not do as it should; empty if it did. `limits`: see lib/run.js. */
export function failures(run, limits) {
  const reasons = [];
  const wrongLabels = ['wrong label', 'another model', 'no labels', 'not three labels']
    .map((name) => [name, run.faults[name] || 0])
    .filter(([, count]) => count > 0);
  for (const [name, count] of wrongLabels) {
    reasons.push(`${count} answers were wrong (${name})`);
  }
  const failed = (run.faults['no answer'] || 0) + (run.faults.status || 0);
  if (failed * 1000 > limits.maxErrorPermille * run.started) {
    const statuses = Object.entries(run.statuses).map(([status, count]) => `${count} x ${status === '0' ? 'none' : status}`);
    reasons.push(`${failed} requests failed (${percent(failed / run.started)}); answers: ${statuses.join(', ')}`);
  }
  for (const { phase, ms } of limits.p99) {
    const seen = run.phases[phase];
    if (seen && seen.count > 0 && seen.p99 > ms) {
      reasons.push(`p99 of ${phase === 'all' ? 'ordinary photos' : `phase "${phase}"`} is ${seen.p99.toFixed(0)} ms, and ${ms} ms is the limit`);
    }
    if (!seen || seen.count === 0) {
      reasons.push(`no ordinary photo was answered rightly${phase === 'all' ? '' : ` in phase "${phase}"`}`);
    }
  }
  if (limits.drift) {
    const { from, to, percent: most } = limits.drift;
    const [before, after] = [run.phases[from], run.phases[to]];
    if (before && after && before.p50 > 0 && after.p50 * 100 > before.p50 * most) {
      reasons.push(
        `the median rose from ${before.p50.toFixed(1)} ms (${from}) to ${after.p50.toFixed(1)} ms (${to}), ` +
          `and ${most - 100} % is the limit`,
      );
    }
  }
  return reasons;
}

/** The verdict and its reasons. A run that is not valid says nothing of the service, whatever else it saw. */
export function judge(run, limits) {
  const invalid = invalidities(run);
  const failed = failures(run, limits);
  const verdict = invalid.length > 0 ? 'invalid' : failed.length > 0 ? 'fail' : 'pass';
  return { verdict, reasons: [...invalid, ...failed] };
}
