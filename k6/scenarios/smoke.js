// A short run: is every answer right, perhaps while something else happens (a rollout, say)? Latency is told, not judged.
//
//   SET=/tmp/images/set.json RATE=10 SECONDS=30 k6/run smoke
//   URL=http://127.0.0.1:8000 IMAGES=$PWD/cat.jpg k6 run k6/scenarios/smoke.js
//
// IMAGES are absolute paths of photos without expectations: any three labels are right then. The last line printed is
// one JSON object.
import { config } from '../lib/config.js';
import { prepare } from '../lib/run.js';

const run = await prepare({
  scenario: 'smoke',
  phases: [{ name: 'smoke', rate: config.rate, seconds: config.seconds }],
  limits: { p99: [] },
});

export const options = run.options;
export const setup = run.setup;
export default run.iteration;
export const handleSummary = run.handleSummary;
