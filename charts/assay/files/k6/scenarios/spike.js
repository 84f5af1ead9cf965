// A spike of several times the rate: what cannot be served may be refused (429, 503), nothing may be wrong or lost, and
// afterwards the service answers as before.
//
//   SET=/tmp/images/set.json RATE=20 SPIKE_FACTOR=4 SECONDS=60 k6/run spike
import { config } from '../lib/config.js';
import { prepare } from '../lib/run.js';

// Two fifths before, a fifth of spike, and two fifths after it, the first of which is for what still waits.
const fifth = config.seconds / 5;
const run = await prepare({
  scenario: 'spike',
  phases: [
    { name: 'before', rate: config.rate, seconds: 2 * fifth },
    { name: 'spike', rate: config.rate * config.spikeFactor, seconds: fifth, mayRefuse: true },
    { name: 'recovery', rate: config.rate, seconds: fifth, mayRefuse: true },
    { name: 'after', rate: config.rate, seconds: fifth },
  ],
  limits: {
    p99: [
      { phase: 'before', ms: config.p99Ms },
      { phase: 'spike', ms: config.spikeP99Ms },
      { phase: 'after', ms: config.p99Ms },
    ],
  },
});

export const options = run.options;
export const setup = run.setup;
export default run.iteration;
export const handleSummary = run.handleSummary;
