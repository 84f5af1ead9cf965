// One request and its answer: the photo is read, made distinct, sent, and the answer held against what is expected.
import http from 'k6/http';
import { SharedArray } from 'k6/data';
import { open as openShared } from 'k6/experimental/fs';
import { Counter, Trend } from 'k6/metrics';
import { MIXES } from './mix.js';

/** Stages that the service tells of, in their order (`Server-Timing`). */
export const STAGES = ['receive', 'queue', 'decode', 'preprocess', 'batch_wait', 'infer', 'postprocess', 'respond'];
/** Statuses that are counted one by one; 0 is a request without an answer. */
export const STATUSES = [0, 200, 400, 408, 413, 415, 422, 429, 500, 502, 503, 504];

const answers = new Counter('answers');
const wrong = new Counter('wrong_answers');
const stageTime = new Trend('stage_time', true);

/** The images of a run, from set.json or, without expectations, from IMAGES; the same in every sender. */
export function imageSet({ set, images }) {
  const list = new SharedArray('images', () => {
    if (set) {
      return JSON.parse(open(set)).images;
    }
    return images.map((file) => ({ file, kind: 'ordinary', type: 'image/jpeg', status: 200, labels: null }));
  });
  if (list.length === 0) {
    throw new Error('there is nothing to send: SET=.../set.json (images/generate.py makes one) or IMAGES=photo.jpg[,...]');
  }
  return list;
}

/** Opens the images in their folder; the bytes are in memory once, however many senders there are. */
export async function openImages(list, { set }) {
  const folder = set ? set.slice(0, set.lastIndexOf('/') + 1) : '';
  const opened = [];
  for (const { file } of list) {
    const handle = await openShared(folder + file);
    opened.push({ handle, size: (await handle.stat()).size });
  }
  return opened;
}

// A JPEG may carry comments anywhere before its picture: ours holds a number, and no two uploads are the same bytes.
const COMMENT_BYTES = 12;

async function body(image, distinct, serial) {
  const bytes = new Uint8Array(image.size + (distinct ? COMMENT_BYTES : 0));
  await image.handle.seek(0, 0);
  await image.handle.read(bytes); // always to the buffer's start, whatever part of it is given
  if (distinct) {
    bytes.copyWithin(2 + COMMENT_BYTES, 2, image.size);
    // After FF D8 (start): FF FE (comment), its length, and the number in eight hexadecimal digits.
    bytes.set([0xff, 0xfe, 0, COMMENT_BYTES - 2], 2);
    const digits = serial.toString(16).padStart(8, '0');
    for (let at = 0; at < 8; at += 1) {
      bytes[6 + at] = digits.charCodeAt(at);
    }
  }
  return bytes.buffer;
}

/** Why an answer is wrong, in a word or two; empty for a right one. */
export function fault(expected, status, answer) {
  if (status !== expected.status) {
    return status === 0 ? 'no answer' : `status ${status}`;
  }
  if (status !== 200) {
    return '';
  }
  if (!answer || !Array.isArray(answer.predictions) || answer.predictions.length === 0) {
    return 'no labels';
  }
  if (expected.labels === null) {
    return answer.predictions.length === 3 ? '' : 'not three labels';
  }
  const label = expected.labels[answer.model && answer.model.digest];
  if (label === undefined) {
    return 'another model';
  }
  return answer.predictions[0].label === label ? '' : 'wrong label';
}

/** Faults that are told apart in the summary. */
export const FAULTS = ['no answer', 'status', 'no labels', 'not three labels', 'another model', 'wrong label'];

function parsed(response) {
  try {
    return response.json();
  } catch {
    return null;
  }
}

function addStages(header) {
  for (const entry of (header || '').split(',')) {
    const [name, duration] = entry.trim().split(';dur=');
    if (duration !== undefined && STAGES.includes(name)) {
      stageTime.add(Number(duration), { stage: name });
    }
  }
}

// Of thousands of faults the first of each sender tell enough; the summary has the counts.
let told = false;

/** Send an image; returns whether the answer was right, and whether it was an allowed refusal (`mayRefuse`). */
export async function send(config, expected, image, serial, mayRefuse) {
  const distinct = !MIXES[config.mix].repeats && expected.type === 'image/jpeg' && expected.kind !== 'hostile';
  const response = http.post(`${config.url}/v1/classify`, await body(image, distinct, serial), {
    headers: { 'Content-Type': expected.type },
    timeout: `${config.timeoutSeconds}s`,
  });
  const finished = Date.now();
  const status = STATUSES.includes(response.status) ? response.status : 500;
  answers.add(1, { status: String(status) });
  const refused = mayRefuse && (response.status === 503 || response.status === 429);
  const found = refused ? '' : fault(expected, response.status, response.status === 200 ? parsed(response) : null);
  if (found) {
    wrong.add(1, { fault: found.startsWith('status') ? 'status' : found });
    if (!told) {
      told = true;
      console.error(`request ${serial} (${expected.file}): ${found}; ${response.error || String(response.body).slice(0, 200)}`);
    }
  } else if (response.status === 200 && expected.kind === 'ordinary') {
    addStages(response.headers['Server-Timing']);
  }
  return { right: !found, refused, finished };
}
