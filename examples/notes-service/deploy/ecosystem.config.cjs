module.exports = {
  apps: [
    {
      name: 'notes',
      script: 'dist/main.js',
      exec_mode: 'cluster',
      instances: 4,
      // A process counts as started once it has said `ready`: its database is open then.
      wait_ready: true,
      listen_timeout: 60_000,
      // Longer than it takes to stop. After that PM2 kills.
      kill_timeout: 90_000,
      env: {
        NODE_ENV: 'production',
        PORT: 3000,
        // Long enough for every client that is at work to ask once more, and be told to make another connection.
        DRAIN_MS: 2000,
        STOREDB_BUCKET: 'my-notes',
        STOREDB_REGION: 'eu-central-1',
      },
    },
  ],
};
