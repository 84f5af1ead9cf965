// A run from its plan to its files. A scenario says what is asked and what is allowed; everything else is here.
import http from 'k6/http';
import { SharedArray } from 'k6/data';
import { Counter, Trend } from 'k6/metrics';
import { arrivalsOf, phaseAt } from './arrivals.js';
import { imageSet, openImages, send } from './client.js';
import { config } from './config.js';
import { draw } from './mix.js';
import { MAX_SENDERS, latency, mostWithin, options as openLoop, waitUntilDue } from './openloop.js';
import { html } from './report.js';
import { collect, line, text } from './summary.js';
import { SLOTS, binOf, judge, keptApart } from './thresholds.js';

const latencyRight = new Trend('latency_right', true); // ordinary photos with the right answer
const latencyKind = new Trend('latency_kind', true); // every request, by kind
const latencyBin = new Counter('latency_bin');
const sent = new Counter('sent');
const notRight = new Counter('not_right');
const refusals = new Counter('allowed_refusals');

/**
 * Prepare a run. Top-level only: images are opened here.
 *
 * `scenario`: its name. `phases`: [{ name, rate, seconds, mayRefuse }], one after the other. `limits`: `p99`, a list of
 * { phase, ms } where phase "all" is the whole run, and `drift`, { from, to, percent } of two phases' medians.
 * `finish(run)`: may change the judged run before it is written, and add what else it leaves (file name to text).
 */
export async function prepare({ scenario, phases, limits, finish }) {
  const list = imageSet(config);
  const images = await openImages(list, config);
  const times = new SharedArray('arrivals', () => arrivalsOf(phases, config.seed));
  if (times.length === 0) {
    throw new Error('no request is due in this time at this rate: raise RATE or SECONDS');
  }
  const drawn = new SharedArray('drawn', () =>
    draw(times.length, config.mix, list.map(({ kind }) => kind), config.seed),
  );
  const seconds = phases.reduce((sum, phase) => sum + phase.seconds, 0);
  // Once for all senders, like the arrivals themselves; the one more is for the time it takes to hand over.
  const needed = new SharedArray('senders', () => [mostWithin(arrivalsOf(phases, config.seed), config.timeoutSeconds) + 1]);
  const loop = openLoop(times, config.senders || Math.min(MAX_SENDERS, needed[0]));
  const plan = { scenario, config, phases, times, seconds, senders: loop.scenarios.arrivals.vus };
  const allLimits = { maxErrorPermille: config.maxErrorPermille, ...limits };

  async function iteration() {
    const { index, due } = waitUntilDue(times);
    const slot = String(Math.min(SLOTS - 1, Math.floor((times[index] / seconds) * SLOTS)));
    const phase = phases[phaseAt(phases, times[index])];
    sent.add(1, { slot });
    const expected = list[drawn[index]];
    const { right, refused, finished } = await send(config, expected, images[drawn[index]], index, phase.mayRefuse);
    const took = finished - due;
    latency.add(took);
    latencyKind.add(took, { kind: expected.kind });
    if (right && !refused && expected.kind === 'ordinary') {
      latencyRight.add(took, { slot, phase: phase.name });
      latencyBin.add(1, { bin: String(binOf(took)) });
    }
    if (!right || refused) {
      notRight.add(1, { slot });
    }
    if (refused) {
      refusals.add(1);
    }
  }

  function setup() {
    const asked = phases.map((phase) => `${phase.rate}/s for ${phase.seconds} s`).join(', then ');
    console.info(`${scenario}, mix ${config.mix}: ${times.length} requests to ${config.url}, ${asked}`);
    const answer = http.get(`${config.url}/v1/model`, { timeout: `${config.timeoutSeconds}s` });
    if (answer.status !== 200) {
      return null;
    }
    const { name, precision, digest, variant, workers, cpu_limit_millicores, cpu_features } = answer.json();
    return { name, precision, digest, variant, workers, cpu_limit_millicores, cpu_features };
  }

  function handleSummary(data) {
    const run = collect(data, plan);
    Object.assign(run, judge(run, allLimits));
    run.p99LimitMs = allLimits.p99.length > 0 ? allLimits.p99[0].ms : null;
    const files = finish ? finish(run) : {};
    const out = { stdout: `${text(run)}${line(run)}\n` };
    if (config.out) {
      const written = {
        verdict: `${run.verdict}\n`,
        'line.json': `${line(run)}\n`,
        'summary.txt': text(run),
        'summary.json': `${JSON.stringify(run, null, 1)}\n`,
        'report.html': html(run),
        ...files,
      };
      for (const [name, content] of Object.entries(written)) {
        out[`${config.out}/${name}`] = content;
      }
    }
    return out;
  }

  return {
    options: {
      ...loop,
      thresholds: keptApart(phases),
      setupTimeout: '30s',
      ...(config.testId ? { tags: { testid: config.testId } } : {}),
    },
    setup,
    iteration,
    handleSummary,
  };
}
