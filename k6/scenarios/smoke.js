// A short open-loop run: is every answer right while something else happens (a rollout, say)?
//
//   URL=http://127.0.0.1:8000 IMAGES=cat.jpg RATE=10 SECONDS=30 k6 run k6/scenarios/smoke.js
//
// IMAGES are files beside this script, or absolute paths. The last line printed is one JSON object.
import http from 'k6/http';
import { check } from 'k6';
import { SharedArray } from 'k6/data';
import { arrivals } from '../lib/arrivals.js';
import { config } from '../lib/config.js';
import { onTime, options as openLoop } from '../lib/openloop.js';

const times = new SharedArray('arrivals', () => arrivals(config));
const bodies = config.images.map((name) => open(name, 'b'));
if (bodies.length === 0) {
  throw new Error('IMAGES names no file: IMAGES=photo.jpg[,other.jpg]');
}

export const options = openLoop(times, config.senders);

export default function () {
  onTime(times, (index) => {
    const answer = http.post(`${config.url}/v1/classify`, bodies[index % bodies.length], {
      headers: { 'Content-Type': 'image/jpeg' },
      timeout: '10s',
    });
    const fine = check(answer, {
      'answered with 200': (got) => got.status === 200,
      'three labels': (got) => got.status === 200 && got.json('predictions').length === 3,
    });
    if (!fine) {
      console.error(`request ${index}: status ${answer.status}, ${answer.error || answer.body}`);
    }
  });
}

export function handleSummary(data) {
  const values = (name) => (data.metrics[name] ? data.metrics[name].values : {});
  const summary = {
    requests: values('http_reqs').count,
    failed: values('http_req_failed').passes,
    checksFailed: values('checks').fails,
    lateShare: values('late_arrivals').rate,
    latencyMs: values('latency_from_intended'),
  };
  return { stdout: `${JSON.stringify(summary)}\n` };
}
