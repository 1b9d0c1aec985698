/** What the example service says of itself, and the dashboard and alarms that are made of it. */
import { readFile } from 'node:fs/promises';
import { MemoryDriver } from 'store-db/lib/storage';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { buildService } from '../../../examples/notes-service/service.ts';
import type { Service } from '../../../examples/notes-service/service.ts';
import { readSettings } from '../../../examples/notes-service/settings.ts';

const pages = new URL('../../../docs/observability/', import.meta.url);
const store = new MemoryDriver();
let service: Service;

async function get(url: string): Promise<{ status: number; body: string }> {
  const { statusCode, body } = await service.app.inject(url);
  return { status: statusCode, body };
}

async function build(): Promise<Service> {
  const built = buildService({ ...readSettings({ LOG_LEVEL: 'silent' }), driver: store, intervalMs: 86_400_000 });
  await built.app.ready();
  return built;
}

beforeAll(async () => {
  service = await build();
  await service.app.inject({ method: 'POST', url: '/notes', payload: { topic: 'a', title: 'b' } });
});

afterAll(() => service.app.close());

describe('the example service', () => {
  it('answers a probe from what it knows', async () => {
    const requests = /^storedb_requests_total\{kind="get"\} .*$/m;
    const before = requests.exec((await get('/metrics')).body)?.[0];
    for (let probe = 0; probe < 20; probe++) {
      expect(await get('/healthz')).toEqual({ status: 200, body: '{"status":"ok","reasons":[]}' });
    }
    expect(requests.exec((await get('/metrics')).body)?.[0]).toBe(before);
    expect(before).toBeDefined();
  });

  it('says that it lives and is ready, until it stops, or its database is replaced for good', async () => {
    const answers = async (): Promise<number[]> => {
      const routes = ['/live', '/ready', '/healthz'];
      return Promise.all(routes.map(async (route) => (await get(route)).status));
    };
    expect(await answers()).toEqual([200, 200, 200]);
    service.health.isStopping = true;
    expect(await answers()).toEqual([200, 503, 200]);
    service.health.isStopping = false;
    await store.delete(['notes/block0']);
    const fresh = { 'cache-control': 'no-cache' };
    expect((await service.app.inject({ url: '/notes', headers: fresh })).statusCode).toBeGreaterThanOrEqual(500);
    expect(await answers()).toEqual([503, 503, 503]);
    expect(JSON.parse((await get('/healthz')).body)).toMatchObject({
      status: 'failing',
      reasons: [{ code: 'replaced' }],
    });
    expect((await get('/metrics')).body).toMatch(/^storedb_health_reason\{code="replaced"\} 2$/m);
    await service.app.close().catch(() => undefined);
    await store.delete((await store.list('notes/')).entries.map(({ key }) => key));
    service = await build();
    expect(await answers()).toEqual([200, 200, 200]);
  });
});

/** The names of the metrics, and those of the series of histograms, with their labels and the values of these. */
async function exported(): Promise<{ names: Set<string>; series: Set<string> }> {
  const { body } = await get('/metrics');
  const names = new Set(Array.from(body.matchAll(/^(storedb_\w+)[ {]/gm), ([, name]) => name as string));
  const series = new Set<string>();
  for (const [, name, labels = ''] of body.matchAll(/^(storedb_\w+)(?:\{(.*?)\})? /gm)) {
    for (const [, label, value] of labels.matchAll(/(\w+)="(.*?)"/g)) series.add(`${name}{${label}="${value}"}`);
  }
  return { names, series };
}

function metricsIn(expression: string): string[] {
  return Array.from(expression.matchAll(/\bstoredb_\w+/g), ([name]) => name);
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource: { readonly type: string; readonly uid: string };
  readonly targets: readonly { readonly refId: string; readonly expr: string; readonly datasource: object }[];
}

describe('the dashboard', () => {
  it('has the shape that Grafana imports', async () => {
    const dashboard = JSON.parse(await readFile(new URL('dashboard.json', pages), 'utf8')) as {
      panels: readonly Panel[];
      [name: string]: unknown;
    };
    const { panels } = dashboard;
    expect(dashboard).toMatchObject({ id: null, uid: 'storedb', title: 'StoreDb', schemaVersion: 38 });
    expect(dashboard['__inputs']).toMatchObject([
      { name: 'DS_PROMETHEUS', type: 'datasource', pluginId: 'prometheus' },
    ]);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const required = (dashboard['__requires'] as { type: string; id: string }[]).filter(({ type }) => type === 'panel');
    for (const { type, title, description, gridPos, datasource, targets } of panels) {
      expect(required.map(({ id }) => id)).toContain(type);
      expect(description.length).toBeGreaterThan(title.length);
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      expect(datasource).toEqual({ type: 'prometheus', uid: '${DS_PROMETHEUS}' });
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
    }
    for (const one of panels) {
      const overlaps = panels.filter(({ id, gridPos: { x, y, w, h } }) => {
        const { gridPos } = one;
        return (
          id !== one.id &&
          x < gridPos.x + gridPos.w &&
          gridPos.x < x + w &&
          y < gridPos.y + gridPos.h &&
          gridPos.y < y + h
        );
      });
      expect(overlaps).toEqual([]);
    }
  });

  it('asks for every metric of the exporter, and for no other', async () => {
    const text = await readFile(new URL('dashboard.json', pages), 'utf8');
    const { names } = await exported();
    const asked = new Set(metricsIn(text));
    expect([...asked].filter((name) => !names.has(name))).toEqual([]);
    const shown = new Set([...asked].map((name) => name.replace(/_bucket$/, '')));
    // The page names what the dashboard leaves to alarms.
    const left = [...names]
      .map((name) => name.replace(/_(?:bucket|sum|count)$/, ''))
      .filter((name) => !shown.has(name));
    expect(new Set(left)).toEqual(new Set(['storedb_health_value']));
  });
});

describe('the alarms', () => {
  interface Rule {
    readonly alert: string;
    readonly expr: string;
    readonly for: string;
    readonly labels: { readonly severity: string };
    readonly annotations: { readonly summary: string };
  }

  it('are rules of Prometheus on series that the exporter has, and the page explains each', async () => {
    const text = await readFile(new URL('alerts.yaml', pages), 'utf8');
    const { groups } = parse(text) as { groups: readonly { name: string; rules: readonly Rule[] }[] };
    const rules = groups.flatMap((group) => group.rules);
    const { names, series } = await exported();
    const page = await readFile(new URL('../observability.md', pages), 'utf8');
    expect(rules.length).toBeGreaterThan(5);
    for (const { alert, expr, for: duration, labels, annotations } of rules) {
      expect(metricsIn(expr).length).toBeGreaterThan(0);
      for (const name of metricsIn(expr)) expect(names).toContain(name);
      for (const [, name, matchers] of expr.matchAll(/(storedb_\w+)\{(.*?)\}/g)) {
        for (const [, label, value] of (matchers ?? '').matchAll(/(\w+)="(.*?)"/g)) {
          expect(series).toContain(`${name}{${label}="${value}"}`);
        }
      }
      expect(duration).toMatch(/^\d+[mh]$/);
      expect(['page', 'ticket']).toContain(labels.severity);
      expect(annotations.summary.length).toBeGreaterThan(10);
      expect(page).toContain(`| \`${alert}\` | ${labels.severity}, ${duration} |`);
    }
    const explained = Array.from(page.matchAll(/^\| `(StoreDb\w+)` \|/gm), ([, name]) => name);
    expect(explained).toEqual(rules.map(({ alert }) => alert));
  });
});
