// What a run is told through the environment, with its defaults. k6/README.md has the table.

function number(name, fallback) {
  const text = __ENV[name];
  if (text === undefined || text === '') {
    return fallback;
  }
  const value = Number(text);
  if (!Number.isFinite(value)) {
    throw new Error(`${name} must be a number, not "${text}"`);
  }
  return value;
}

function given(names, fallbacks) {
  return Object.fromEntries(names.map((name, index) => [name, number(name, fallbacks[index])]));
}

const numbers = given(['RATE', 'SECONDS', 'SEED', 'SENDERS', 'TIMEOUT_S'], [10, 30, 1, 0, 5]);

export const config = {
  url: (__ENV.URL || 'http://127.0.0.1:8000').replace(/\/$/, ''),
  rate: numbers.RATE, // requests per second
  seconds: numbers.SECONDS,
  seed: numbers.SEED,
  // Senders that wait for their requests' due times; 0: as many as a server that never answers could hold up.
  senders: numbers.SENDERS,
  // Five times the service's default deadline: what takes longer is lost, whatever comes back.
  timeoutSeconds: numbers.TIMEOUT_S,
  // Photos without expectations: a right answer has three labels.
  images: (__ENV.IMAGES || '').split(',').filter((name) => name),
  // set.json of images/generate.py: photos with the label that the model gives each.
  set: __ENV.SET || '',
  mix: __ENV.MIX || 'distinct',
  // Whether RATE was given: a scenario may have a better default.
  rateGiven: Boolean(__ENV.RATE),
  // Where verdict, summary and report are written; nowhere if empty.
  out: (__ENV.OUT || '').replace(/\/$/, ''),
  // Label of the run's own metrics where they go to Prometheus; the dashboard "Load test" tells runs apart by it.
  testId: __ENV.TESTID || '',
  // p99 of ordinary photos. On 2 cores 40 req/s have 57 ms, and at 500 ms of queued work the service starts to refuse.
  p99Ms: number('P99_MS', 250),
  // Requests that may go without a right answer, in thousandths. None: below its ceiling the service refuses nobody.
  maxErrorPermille: number('MAX_ERROR_PERMILLE', 0),
  // The spike: how many times RATE, which is well beyond what a service sized for RATE can do.
  spikeFactor: number('SPIKE_FACTOR', 4),
  // p99 of what is answered during a spike: the service's deadline (1000) and budget (500), and the way there and back.
  spikeP99Ms: number('SPIKE_P99_MS', 2000),
  // The soak: median of the last third by that of the first. A neighbour's noise stays below, a leak or a cache that
  // only grows does not.
  maxDriftPercent: number('MAX_DRIFT_PERCENT', 125),
  // The breakpoint: where doubling begins, how close the bisection comes, and the least ceiling that passes.
  startRate: number('START_RATE', 10),
  resolutionPercent: number('RESOLUTION_PERCENT', 5),
  minCeiling: number('MIN_CEILING', 0),
};
