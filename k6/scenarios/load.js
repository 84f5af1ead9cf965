// The usual load: a steady rate that the service must serve in time, every answer right.
//
//   SET=/tmp/images/set.json RATE=30 SECONDS=60 k6/run load
//   MIX=12mp | hostile | repeats: a share of phone photos, of files that do harm, of the same few photos
import { config } from '../lib/config.js';
import { prepare } from '../lib/run.js';

const run = await prepare({
  scenario: 'load',
  phases: [{ name: 'load', rate: config.rate, seconds: config.seconds }],
  limits: { p99: [{ phase: 'all', ms: config.p99Ms }] },
});

export const options = run.options;
export const setup = run.setup;
export default run.iteration;
export const handleSummary = run.handleSummary;
