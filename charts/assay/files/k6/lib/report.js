// A run as one HTML file with pictures in it; nothing is loaded from anywhere.
import { escaped, histogram, lines, stack } from './charts.js';

// Three blues from light to dark for rising percentiles; red is kept for what went wrong.
const COLORS = { p50: '#7fb3e6', p95: '#2f7cc4', p99: '#12406f', wrong: '#c62828', sent: '#12406f', pass: '#2e7d32' };
// Stages in the order of a request: the ones that compute stand out, waiting is grey.
const STAGE_COLORS = {
  receive: '#9aa5b1', queue: '#d9822b', decode: '#12406f', preprocess: '#2f7cc4', batch_wait: '#e0b050',
  infer: '#2e8b6f', postprocess: '#8bc4b0', respond: '#c3cad2', elsewhere: '#e5e7eb',
}; // prettier-ignore
const VERDICTS = {
  pass: ['#2e7d32', 'The service did what was asked.'],
  fail: ['#c62828', 'The run is valid, and the service did not do what was asked.'],
  invalid: ['#8a5a00', 'The run did not measure what it was to measure; it says nothing of the service.'],
};

const STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; background: #fff; max-width: 800px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin: 0; } h2 { font-size: 1.05em; margin: 2em 0 .2em; } p { margin: .3em 0; } p.note { color: #52606d; }
.verdict { border-left: 6px solid; padding: .4em 1em; background: #f5f7fa; margin: 1em 0; } .verdict b { font-size: 1.2em; letter-spacing: .04em; }
table { border-collapse: collapse; margin: .5em 0; font-variant-numeric: tabular-nums; } th, td { padding: .15em .9em .15em 0; text-align: right; border-bottom: 1px solid #e4e7eb; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; color: #52606d; }
svg { width: 100%; height: auto; display: block; } .grid { stroke: #e4e7eb; } .axis { stroke: #7b8794; } .mark { stroke: #6b7280; stroke-dasharray: 5 4; }
.band { fill: #f0f4f8; } text { font: 11px system-ui, sans-serif; fill: #52606d; } text.end { font-weight: 600; fill: revert-layer; } text.name { font-size: 12px; }
`;

const ms = (value) => (value < 10 ? value.toFixed(1) : value.toFixed(0));

function table(head, rows) {
  const cells = (tag, row) => row.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('');
  return [
    '<table>',
    `<tr>${cells('th', head)}</tr>`,
    ...rows.map((row) => `<tr>${cells('td', row)}</tr>`),
    '</table>',
  ].join('\n');
}

function latencies(run) {
  const row = (name, found) => [name, found.count, ms(found.p50), ms(found.p95), ms(found.p99), ms(found.max)];
  const rows = [row('ordinary photos', run.phases.all)];
  if (run.plan.length > 1) {
    rows.push(...run.plan.map(({ name }) => row(`  in ${name}`, run.phases[name])));
  }
  for (const [kind, found] of Object.entries(run.kinds)) {
    if (kind !== 'ordinary') {
      rows.push(row(kind, found));
    }
  }
  return table(['latency in ms, from the time due', 'requests', 'p50', 'p95', 'p99', 'max'], rows);
}

function facts(run) {
  const { model } = run;
  const rows = [
    ['asked for', run.plan.map(({ name, rate, seconds }) => `${name}: ${rate}/s for ${seconds} s`).join('; ')],
    ['arrivals', `Poisson, seed ${run.seed}, mix ${run.mix}`],
    ['sent', `${run.started} of ${run.planned}, ${(run.lateShare * 100).toFixed(2)} % late, ${run.senders} senders`],
    ['answers', Object.entries(run.statuses).map(([status, count]) => `${status === '0' ? 'none' : status}: ${count}`).join(', ')],
    ['to', run.url],
  ];
  if (model) {
    rows.push(['model', `${model.name}, ${model.precision}, ${model.digest}`]);
    rows.push([
      'server',
      `${model.workers} workers, CPU limit ${model.cpu_limit_millicores}m, ${(model.cpu_features || []).join(' ')}`,
    ]);
  }
  return `<table class="facts">\n${rows
    .map(([name, value]) => `<tr><th>${escaped(name)}</th><td style="text-align:left">${escaped(value)}</td></tr>`)
    .join('\n')}\n</table>`;
}

function overTime(run) {
  const width = run.seconds / run.slots.length;
  const points = (key) => run.slots.map((slot, index) => [(index + 0.5) * width, slot.count > 0 ? slot[key] : null]);
  const bands = [];
  let from = 0;
  run.plan.forEach(({ name, seconds }, index) => {
    if (index % 2 === 1) {
      bands.push({ name, from, to: from + seconds });
    }
    from += seconds;
  });
  const latency = lines({
    title: 'Latency over time', xTitle: 'seconds from the start', yTitle: 'ms', xMax: run.seconds, bands,
    series: ['p50', 'p95', 'p99'].map((name) => ({ name, color: COLORS[name], points: points(name) })),
    marks: run.p99LimitMs ? [{ name: 'limit of p99', y: run.p99LimitMs }] : [],
  }); // prettier-ignore
  const perSecond = (key) => run.slots.map((slot, index) => [(index + 0.5) * width, slot[key] / width]);
  const rates = lines({
    title: 'Requests over time', xTitle: 'seconds from the start', yTitle: 'requests per second', xMax: run.seconds, bands,
    series: [
      { name: 'sent', color: COLORS.sent, points: perSecond('sent') },
      { name: 'not right', color: COLORS.wrong, points: perSecond('notRight') },
    ],
  }); // prettier-ignore
  return { latency, rates };
}

function stages(run) {
  const told = Object.entries(run.stages);
  if (told.length === 0) {
    return '';
  }
  const sum = told.reduce((total, [, mean]) => total + mean, 0);
  const rest = Math.max(0, run.phases.all.mean - sum);
  const parts = [...told, ['elsewhere', rest]].map(([name, value]) => ({ name, value, color: STAGE_COLORS[name] }));
  return [
    '<h2>Where the time went</h2>',
    `<p class="note">Mean of ordinary photos, ${ms(run.phases.all.mean)} ms. The stages are the service's own (Server-Timing); elsewhere is the network and the load generator.</p>`,
    stack({ title: 'Mean time by stage', unit: 'ms', parts }),
  ].join('\n');
}

function ceiling(run) {
  if (!run.probes) {
    return '';
  }
  const dots = (verdict) => run.probes.filter((probe) => probe.verdict === verdict).map(({ rate, p99 }) => [rate, p99]);
  const chart = lines({
    title: 'p99 by rate', xTitle: 'requests per second', yTitle: 'p99, ms',
    xMax: Math.max(...run.probes.map(({ rate }) => rate)) * 1.05,
    series: [
      { name: 'passed', color: COLORS.pass, points: dots('pass'), dots: true },
      { name: 'failed', color: COLORS.wrong, points: dots('fail'), dots: true },
      { name: 'invalid', color: '#8a5a00', points: dots('invalid'), dots: true },
    ],
    marks: [{ name: 'limit of p99', y: run.p99LimitMs }],
  }); // prettier-ignore
  const rows = run.probes.map(({ rate, verdict, p50, p95, p99 }) => [rate, verdict, ms(p50), ms(p95), ms(p99)]);
  const { low, high } = run.ceiling;
  return [
    '<h2>Ceiling</h2>',
    `<p>${low} to ${high === null ? 'unknown' : high} requests per second with p99 within ${run.p99LimitMs} ms.</p>`,
    chart,
    table(['requests per second', 'verdict', 'p50', 'p95', 'p99'], rows),
    '<p class="note">What follows is the last probe.</p>',
  ].join('\n');
}

/** The report of a run, as HTML. */
export function html(run) {
  const [color, meaning] = VERDICTS[run.verdict] || ['#52606d', 'One probe of several.'];
  const { latency, rates } = overTime(run);
  const { edges, counts } = run.bins;
  const { p50, p99 } = run.phases.all;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Load test: ${escaped(run.verdict)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Load test: ${escaped(run.scenario)}</h1>
<div class="verdict" style="border-color:${color}">
<b style="color:${color}">${escaped(run.verdict.toUpperCase())}</b> ${meaning}
${run.reasons.map((reason) => `<p>${escaped(reason)}</p>`).join('\n')}
</div>
${facts(run)}
${ceiling(run)}
<h2>Latency</h2>
${latencies(run)}
<h2>Latency over time</h2>
${latency}
<h2>Requests over time</h2>
${rates}
<h2>Distribution of latency</h2>
${histogram({
  title: 'Distribution of latency', xTitle: 'ms, logarithmic', yTitle: 'requests', edges, counts, color: COLORS.p95,
  marks: [{ name: `p50 ${ms(p50)}`, value: p50 }, { name: `p99 ${ms(p99)}`, value: p99 }],
})}
${stages(run)}
</body>
</html>
`;
}
