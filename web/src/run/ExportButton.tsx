/** Saves the page that needs nothing else, to be sent to a colleague. */

import { useMutation } from '@tanstack/react-query';

import { api } from '../api/client';

export function ExportButton({ run }: { run: string }) {
  const saving = useMutation({
    mutationFn: () => api.page(run),
    onSuccess: (page) => {
      const url = URL.createObjectURL(page);
      const link = document.createElement('a');
      link.href = url;
      link.download = `${run}.html`;
      link.click();
      URL.revokeObjectURL(url);
    },
  });
  return (
    <>
      <button
        type="button"
        className="button"
        disabled={saving.isPending}
        title={`turnloom explain ${run} --html FILE`}
        onClick={() => saving.mutate()}
      >
        {saving.isPending ? 'Writing …' : 'Export as a page'}
      </button>
      {saving.isError && (
        <span className="problem" role="alert">
          {saving.error.message}
        </span>
      )}
    </>
  );
}
