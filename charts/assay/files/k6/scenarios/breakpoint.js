// How much can it do? Each run is one probe at one rate; k6/run starts the next one until the ceiling is known: doubled
// from START_RATE until p99 or an answer is not as it must be, then halved between the two until they are close.
//
//   SET=/tmp/images/set.json START_RATE=10 SECONDS=20 P99_MS=250 k6/run breakpoint
//
// Passes when a ceiling was found, and is at least MIN_CEILING. Started without k6/run it makes one probe.
import { config } from '../lib/config.js';
import { prepare } from '../lib/run.js';
import { search } from '../lib/search.js';

// What the probes before this one found; k6/run begins with an empty list.
const probes = config.out ? JSON.parse(open(`${config.out}/probes.json`)) : [];
const { rate } = search(probes, config);

function finish(run) {
  const { p50, p95, p99 } = run.phases.all;
  const now = [...probes, { rate, verdict: run.verdict, p50, p95, p99, planned: run.planned }];
  const next = search(now, config);
  const files = { 'probes.json': `${JSON.stringify(now)}\n` };
  if (next.rate && config.out) {
    run.verdict = 'again';
    return files;
  }
  run.probes = now;
  run.ceiling = { low: next.low || 0, high: Number.isFinite(next.high) ? next.high : null };
  const found = run.ceiling.low > 0 && run.ceiling.high !== null;
  const [reason] = run.reasons;
  run.reasons = [`${next.done || 'one probe'}: ${run.ceiling.low} to ${run.ceiling.high || 'unknown'} req/s`];
  if (run.verdict === 'invalid') {
    run.reasons.push(reason);
  } else if (run.ceiling.low < config.minCeiling || run.ceiling.low === 0) {
    run.verdict = 'fail';
    run.reasons.push(`the ceiling must be at least ${config.minCeiling || rate} req/s${reason ? `; last probe: ${reason}` : ''}`);
  } else {
    run.verdict = found ? 'pass' : 'invalid';
  }
  return files;
}

const run = await prepare({
  scenario: 'breakpoint',
  phases: [{ name: 'probe', rate, seconds: config.seconds }],
  limits: { p99: [{ phase: 'all', ms: config.p99Ms }] },
  finish,
});

export const options = run.options;
export const setup = run.setup;
export default run.iteration;
export const handleSummary = run.handleSummary;
