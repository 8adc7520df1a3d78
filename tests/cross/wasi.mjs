// SPDX-License-Identifier: MIT
//
// wasi.mjs PROGRAM.wasm - runs a WASI program under node, in this directory
import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';

const path = process.argv[2];
const wasi = new WASI({
  version: 'preview1',
  args: process.argv.slice(2),
  env: {},
  preopens: { '.': '.' },
});
const module = await WebAssembly.compile(await readFile(path));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
