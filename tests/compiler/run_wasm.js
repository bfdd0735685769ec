// Runs WebAssembly modules that stand in the input, one after another.
//
// A request is the length of its head and of what follows, two words of 32 bits; the head in JSON:
// where to write what follows, which exports to call, what to read. Arguments that are texts are
// 64-bit numbers. The answer is a word, 0 or 1, and the length of what it says: what was read
// behind what each call returned (a 64-bit number), or an error's text.
"use strict";
const fs = require("fs");

function take(count) {
  const content = Buffer.alloc(count);
  for (let at = 0; at < count;) {
    const found = fs.readSync(0, content, at, count - at, null);
    if (found === 0) process.exit(0);
    at += found;
  }
  return content;
}

function answer(code, content) {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(code, 0);
  head.writeUInt32LE(content.length, 4);
  const whole = Buffer.concat([head, content]);
  for (let at = 0; at < whole.length;) at += fs.writeSync(1, whole, at);
}

function run(head, content) {
  const module = new WebAssembly.Module(content.subarray(0, head.module));
  const { exports } = new WebAssembly.Instance(module, { Math });
  let at = head.module;
  for (const [address, bytes] of head.write) {
    new Uint8Array(exports.memory.buffer).set(content.subarray(at, at + bytes), address);
    at += bytes;
  }
  const results = head.calls.map(([name, values]) => {
    const given = values.map((item) => (typeof item === "string" ? BigInt(item) : item));
    return BigInt(exports[name](...given) ?? 0);
  });
  const read = head.read.map(([address, bytes]) =>
    Buffer.from(exports.memory.buffer, address, bytes));
  return Buffer.concat([Buffer.from(BigInt64Array.from(results).buffer), ...read]);
}

for (;;) {
  const lengths = take(8);
  const head = JSON.parse(take(lengths.readUInt32LE(0)).toString());
  const content = take(lengths.readUInt32LE(4));
  try {
    answer(0, run(head, content));
  } catch (error) {
    answer(1, Buffer.from(String(error.stack)));
  }
}
