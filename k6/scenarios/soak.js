// Half an hour at a steady rate (SECONDS=1800 unless told otherwise): nothing may get slower with time.
//
//   SET=/tmp/images/set.json RATE=20 k6/run soak
import { config } from '../lib/config.js';
import { prepare } from '../lib/run.js';

const HALF_AN_HOUR = 1800;
const third = (__ENV.SECONDS ? config.seconds : HALF_AN_HOUR) / 3;
const run = await prepare({
  scenario: 'soak',
  phases: ['first', 'middle', 'last'].map((name) => ({ name, rate: config.rate, seconds: third })),
  limits: {
    p99: [{ phase: 'all', ms: config.p99Ms }],
    drift: { from: 'first', to: 'last', percent: config.maxDriftPercent },
  },
});

export const options = run.options;
export const setup = run.setup;
export default run.iteration;
export const handleSummary = run.handleSummary;
