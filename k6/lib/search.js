// The search for the ceiling: doubling until a rate is too much, then bisection between the last two.

// Rates are in tenths of a request per second: finer than any run can tell apart.
const rounded = (rate) => Math.round(rate * 10) / 10;
/** Most runs of one search: 10 doublings (a factor of 1000) and 6 halvings (2 % of a doubling). */
export const MAX_PROBES = 16;
/** Most tries of one rate: a moment without CPU spoils one run, a rate beyond the generator spoils every one. */
export const TRIES = 3;

/**
 * What to do after these probes ({ rate, verdict }): `rate` to try next, or `done` with the bounds of the ceiling.
 * `low` is the highest rate that passed, 0 if none did; `high` the lowest that did not, Infinity if none was found.
 * A rate that fails once counts as too much: a passed rate above it would be luck.
 */
export function search(probes, { startRate, resolutionPercent }) {
  const rates = (verdict) => probes.filter((probe) => probe.verdict === verdict).map((probe) => probe.rate);
  const high = Math.min(Infinity, ...rates('fail'));
  const low = Math.max(0, ...rates('pass').filter((rate) => rate < high));
  const bounds = { low, high };
  if (probes.length === 0) {
    return { rate: rounded(startRate) };
  }
  const last = probes[probes.length - 1];
  if (last.verdict === 'invalid') {
    const tries = probes.filter((probe) => probe.rate === last.rate).length;
    if (tries < TRIES && probes.length < MAX_PROBES) {
      return { rate: last.rate };
    }
    return { done: 'the load generator did not keep up, so the search ends here', ...bounds };
  }
  if (probes.length >= MAX_PROBES) {
    return { done: `${MAX_PROBES} probes were made`, ...bounds };
  }
  if (high === Infinity) {
    return { rate: rounded(low * 2) };
  }
  if (low > 0 && high / low <= 1 + resolutionPercent / 100) {
    return { done: 'the bounds are close enough', ...bounds };
  }
  const middle = rounded((low + high) / 2);
  if (middle <= low || middle >= high || middle < 0.5) {
    return { done: 'there is no rate left between the bounds', ...bounds };
  }
  return { rate: middle };
}
