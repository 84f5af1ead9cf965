// More than the server can do: what is answered, how late, and what the rest is told.
//
//   URL=http://127.0.0.1:8000 IMAGES=$PWD/photo.jpg RATE=150 SECONDS=60 k6 run k6/scenarios/overload.js
//
// LARGE names a large photo that takes the place of every LARGE_EVERY-th one; latencies are those of the others.
// Refusals are part of this run, so only a broken schedule fails it. The last line printed is one JSON object.
import http from 'k6/http';
import { Counter, Trend } from 'k6/metrics';
import { SharedArray } from 'k6/data';
import { arrivals } from '../lib/arrivals.js';
import { config } from '../lib/config.js';
import { onTime, options as openLoop } from '../lib/openloop.js';

const STATUSES = [0, 200, 408, 413, 415, 422, 429, 500, 502, 503, 504];

const times = new SharedArray('arrivals', () => arrivals(config));
const bodies = config.images.map((name) => open(name, 'b'));
const large = __ENV.LARGE ? open(__ENV.LARGE, 'b') : null;
const largeEvery = Number(__ENV.LARGE_EVERY || 50);
if (bodies.length === 0) {
  throw new Error('IMAGES names no file: IMAGES=photo.jpg[,other.jpg]');
}

const accepted = new Trend('accepted_latency', true);
const statuses = Object.fromEntries(STATUSES.map((status) => [status, new Counter(`status_${status}`)]));

export const options = openLoop(times, config.senders || 50);

export default function () {
  onTime(times, (index, due) => {
    const isLarge = large !== null && index % largeEvery === 0;
    const answer = http.post(`${config.url}/v1/classify`, isLarge ? large : bodies[index % bodies.length], {
      headers: { 'Content-Type': 'image/jpeg' },
      timeout: '30s',
    });
    if (statuses[answer.status]) {
      statuses[answer.status].add(1);
    }
    if (answer.status === 200 && !isLarge) {
      accepted.add(Date.now() - due);
    }
  });
}

export function handleSummary(data) {
  const values = (name) => (data.metrics[name] ? data.metrics[name].values : {});
  const counts = STATUSES.map((status) => [status, values(`status_${status}`).count || 0]).filter(([, n]) => n > 0);
  const summary = {
    requests: values('http_reqs').count,
    statuses: Object.fromEntries(counts),
    acceptedMs: values('accepted_latency'),
    lateShare: values('late_arrivals').rate,
  };
  return { stdout: `${JSON.stringify(summary)}\n` };
}
